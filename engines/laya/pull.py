"""Where Laya checkpoints are published, and which files they are."""

from engines.hub import Listing, Source
from engines.laya.checkpoint import CONFIG, ENCODER, SPECIALS, TOKENIZER, WEIGHTS

LISTING = Listing((CONFIG, ENCODER, TOKENIZER, SPECIALS, WEIGHTS))

PINNED = {
    "laya": Source("convaiinnovations/laya", "55cf4c4ebb4ebe31b2550e8bdf3bd21b99753851"),
    "laya-multilingual": Source(
        "convaiinnovations/laya-multilingual", "e4e9ddf21a7b1903b7acffd8814ad4307bf63a67"
    ),
    "laya-typed-decisions": Source(
        "convaiinnovations/laya-typed-decisions", "1a793eb568e6718f15941d08f85432581df534e3"
    ),
}
"""The revisions that the reference package 0.4.15 names as reviewed."""
