"""What every table of config.toml has in common, and the form of the names in it."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = re.compile(r"^[A-Za-z0-9~][A-Za-z0-9_.:/@-]{0,99}$")
Name = Annotated[str, Field(pattern=NAME.pattern)]
"""A name that clients write in a request or operators in a report."""


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError("a path holds no NUL")
    return text


FilePath = Annotated[str, AfterValidator(_path)]
"""Where a file or a folder is."""


class Section(BaseModel):
    """A table of config.toml: unknown keys are refused, values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )
