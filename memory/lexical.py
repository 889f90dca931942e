"""Search by words: BM25 over the memories of one scope, each alone and together with its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from memory.corpus import Corpus
from memory.tokenizer import is_identifier

if TYPE_CHECKING:
    from memory.neighbours import Numbers

K1 = 1.2
"""BM25: how soon repeating a word stops to count (Robertson and Zaragoza 2009, the usual value)."""
B = 0.75
"""BM25: how much long texts are held back (the same source)."""
IDENTIFIER_WEIGHT = 3.0
"""How much more an order number or a version counts than a word of the same rarity: meaning cannot tell
"order 10482" from "order 10483" (cosine .945 with the built-in embedder), so the word has to."""


class WordMatch:
    """How well the words of one query are met by each memory.

    A score is the share of what a text of mean length with every word of the query would get: 0 for a text
    without any of them, 1 at the most. Rarity is ln(1 + (N - n + 0.5) / (n + 0.5)), never negative, over the
    texts given. A word of the query that no text has counts as well: nothing can make up for it.

    Args:
        query: the terms of the query.
        corpus: the memories.
        optional: terms of the query that are not missed where no memory has them.
        marks: properties of memories that count as words of the query: a weight, and 0 or 1 for each.
    """

    def __init__(
        self,
        query: Mapping[str, int],
        corpus: Corpus,
        *,
        optional: Collection[str] = (),
        marks: Sequence[tuple[float, Numbers]] = (),
    ) -> None:
        import numpy as np

        words = list(query)
        found = corpus.occurrences(words)
        wanted = [i for i, word in enumerate(words) if word not in optional or found[i].any()]
        named = [is_identifier(words[i]) for i in wanted]
        weights = [IDENTIFIER_WEIGHT if is_one else 1.0 for is_one in named]
        self._corpus = corpus
        self._occurrences = np.vstack([found[wanted], *(values for _, values in marks)])
        self._weights = np.array([*weights, *(weight for weight, _ in marks)])
        self.finds_identifier = bool(self._occurrences[: len(named)][named].any())
        """Whether an identifier of the query stands in one of the memories."""

    def alone(self) -> Numbers:
        """A score for each memory by its own words."""
        return self._scored(self._occurrences, self._corpus.lengths)

    def together(self) -> Numbers:
        """A score for each memory by its own words and those of its neighbours."""
        return self._scored(self._corpus.neighbours.total(self._occurrences), self._corpus.lengths_together)

    def _scored(self, occurrences: Numbers, lengths: Numbers) -> Numbers:
        import numpy as np

        holding = np.count_nonzero(occurrences, axis=1)
        weights = self._weights * np.log1p((len(lengths) - holding + 0.5) / (holding + 0.5))
        ideal = float(weights.sum())
        if not ideal or not len(lengths):
            return np.zeros(len(lengths))
        mean = max(1.0, float(lengths.mean()))
        held_back = K1 * (1.0 - B + B * lengths / mean)
        saturated = occurrences * (K1 + 1.0) / (occurrences + held_back)
        share: Numbers = np.minimum(1.0, weights @ saturated / ideal)
        return share
