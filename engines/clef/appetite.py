"""The most tokens that Clef makes of a question: its prompt has many words of its own."""

from engines.appetite import Appetite
from engines.clef import rendering
from engines.clef.prompt import schema
from engines.clef.tokens import Tokens
from engines.contract import Noul

_MARGIN = 8
"""For numbers of more digits and longer names of kinds than in the question that is measured."""
_MOST_OPTIONS = 255
_LONGEST_ID = "false"
"""Of options that have no name of their own."""


def appetite(tokens: Tokens, neutral: str, *, named: bool, pictures: int) -> Appetite:
    """Measured on a question without texts, whose id is `neutral`.

    `named`: ids are read verbatim. `pictures`: the most tokens of a prompt with images.
    """
    ids, _ = schema(tokens, {neutral: rendering.worded(Noul())})
    around = rendering.option("", "").encode()
    label = tokens.control(rendering.label(_MOST_OPTIONS) + rendering.OPTION_END)
    return Appetite(
        question=len(tokens.prefix) + len(ids) + _MARGIN,
        text=len(around) + len(_LONGEST_ID) + len(label) + 1,
        quoted=True,
        named=named,
        pictures=pictures,
    )
