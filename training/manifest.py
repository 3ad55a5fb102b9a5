"""Says which split of which set plays which role, and writes `manifest.json` of a folder.

    python -m training.manifest --data DIR

The roles are decided before any training: what is reported is never trained on or stopped on.
"""

import argparse
import hashlib
import json
import re
from pathlib import Path

SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "clinc150": {"train": ("train",), "unused": ("dev", "test")},
    "snli_choice": {"train": ("train",), "unused": ("test",)},
    "snli_noul": {"train": ("train",), "unused": ("test",)},
    "mnli_choice": {"train": ("train",), "unused": ("test",)},
    "mnli_noul": {"train": ("train",), "unused": ("test",)},
    "qnli": {"train": ("train",), "unused": ("test",)},
    "stsb": {"train": ("train",), "unused": ("test",)},
    "sms_spam": {"validate": ("train",), "report": ("test",)},
    "boolq": {"validate": ("train",), "report": ("test",)},
    "scitail": {"validate": ("train",), "report": ("test",)},
    "banking77": {"validate": ("train",), "report": ("test",)},
    "snips": {"unused": ("train",), "report": ("test",)},
    "hatecheck": {"report": ("test",)},
    "sys1bench_canary": {"report": ("test",)},
}
HELD_OUT = {
    "noul": ("hatecheck", "boolq", "sms_spam", "scitail", "sys1bench_canary"),
    "choice": ("banking77", "snips", "sys1bench_canary"),
    "score": ("sys1bench_canary",),
}


def entries(folder: Path) -> list[dict[str, object]]:
    """One entry a file: set, split, rows, sha256, licence, source and role."""
    found: list[dict[str, object]] = []
    licences = _licences(folder)
    for name, roles in SETS.items():
        for role, splits in roles.items():
            for split in splits:
                content = (folder / f"{name}.{split}.jsonl").read_bytes()
                licence, source = licences[name]
                found.append(
                    {
                        "set": name,
                        "split": split,
                        "role": role,
                        "rows": content.count(b"\n"),
                        "sha256": hashlib.sha256(content).hexdigest(),
                        "licence": licence,
                        "source": source,
                    }
                )
    return found


def _licences(folder: Path) -> dict[str, tuple[str, str]]:
    """Set to (licence, source), read from the table of the folder's README."""
    table: dict[str, tuple[str, str]] = {}
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and cells[0] in SETS:
            table[cells[0]] = (cells[4], cells[5])
    return table


def changed(folder: Path, manifest: Path) -> list[str]:
    """The files under `folder` whose digest is not the manifest's, as `set.split`."""
    wanted = json.loads(manifest.read_text(encoding="utf-8"))["files"]
    return [
        f"{entry['set']}.{entry['split']}"
        for entry, now in zip(wanted, entries(folder), strict=True)
        if entry["sha256"] != now["sha256"]
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    written = {"held_out": HELD_OUT, "files": entries(given.data)}
    text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
    Path(__file__).with_name("manifest.json").write_text(text, encoding="utf-8")
