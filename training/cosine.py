"""The cosine term: how near the frozen bi-encoder finds a state and what is asked of it."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.encoder import Encoder, embedded
from training.sets import Example

MOST_TOKENS = 256


class Cosine:
    """Cosines by the frozen encoder; remembers the vectors of the texts it has seen."""

    def __init__(self, encoder: Encoder, tokenizer: Tokenizer) -> None:
        self._encoder = encoder.eval().requires_grad_(False)
        self._tokenizer = tokenizer
        self._vectors: dict[str, Tensor] = {}

    def terms(self, examples: Sequence[Example]) -> list[Tensor]:
        """Per example float32[options], in -1..1: state against option.

        A noul is read as state against instructions for "yes" and 0 for "no", because the
        words yes and no are near to nothing.
        """
        self._embed(examples)
        terms = []
        for example in examples:
            state = self._vectors[example.state]
            if example.kind == "noul":
                near = state @ self._vectors[example.instructions]
                terms.append(torch.stack([near, torch.zeros(())]))
            else:
                terms.append(torch.stack([self._vectors[o] for o in example.options]) @ state)
        return terms

    def vectors(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors of texts, float32[texts, 384]."""
        tokens = [self._tokenizer.encode(text).ids[:MOST_TOKENS] for text in texts]
        return embedded(self._encoder, tokens, tokens_a_batch=2048)

    def _embed(self, examples: Sequence[Example]) -> None:
        wanted: dict[str, None] = {}
        for example in examples:
            wanted[example.state] = None
            asked = (example.instructions,) if example.kind == "noul" else example.options
            wanted.update(dict.fromkeys(asked))
        texts = [text for text in wanted if text not in self._vectors]
        if texts:
            self._vectors.update(zip(texts, self.vectors(texts), strict=True))
