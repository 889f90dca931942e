"""How well each memory answers a query: words and meaning, each on a scale from 0 to 1, and their mean."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.tokenizer import is_identifier, tokens

K1 = 1.2
"""BM25: how soon repeating a word stops to count (Robertson and Zaragoza 2009, the usual value)."""
B = 0.75
"""BM25: how much long texts are held back (the same source)."""
IDENTIFIER_WEIGHT = 3.0
"""How much more an order number or a version counts than a word of the same rarity: meaning cannot tell
"order 10482" from "order 10483" (cosine .945 with the built-in embedder), so the word has to."""
DENSE_SHARE = 0.5
"""Of the score; the rest is the lexical share."""


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of a score, each 0 to 1."""

    dense: float
    lexical: float

    @property
    def total(self) -> float:
        """The score a caller sees, 0 to 1."""
        return DENSE_SHARE * self.dense + (1.0 - DENSE_SHARE) * self.lexical


EXACT = Score(1.0, 1.0)
"""Of a memory that says the very words of the query."""


def score(query: str, texts: Sequence[str], similarity: Sequence[float]) -> list[Score]:
    """Score texts against a query.

    Args:
        query: not blank.
        texts: what the memories say.
        similarity: cosine of each text's vector with the query's, -1 to 1.

    Returns:
        One score a text, in the same order.
    """
    return [
        Score(min(1.0, max(0.0, dense)), lexical)
        for dense, lexical in zip(similarity, bm25(query, texts), strict=True)
    ]


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """BM25 of each text, as a share of what the query itself would get as a text.

    The very words of the query give 1 whatever the collection is; a text without any of them 0. With idf of
    ln(1 + (N - n + 0.5) / (n + 0.5)), never negative, over the texts given.
    """
    counts = [Counter(tokens(text)) for text in texts]
    wanted = Counter(tokens(query))
    if not wanted or not counts:
        return [0.0] * len(texts)
    lengths = [sum(count.values()) for count in counts]
    mean_length = max(1.0, sum(lengths) / len(lengths))
    weights = _weights(wanted, counts)
    ideal = sum(
        weights[word] * _saturated(n, sum(wanted.values()), mean_length) for word, n in wanted.items()
    )
    return [
        min(
            1.0,
            sum(
                weights[word] * _saturated(count[word], length, mean_length)
                for word in wanted
                if word in count
            )
            / ideal,
        )
        for count, length in zip(counts, lengths, strict=True)
    ]


def _weights(wanted: Mapping[str, int], counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    weights = {}
    for word in wanted:
        holding = sum(1 for count in counts if word in count)
        rarity = math.log(1.0 + (len(counts) - holding + 0.5) / (holding + 0.5))
        weights[word] = rarity * (IDENTIFIER_WEIGHT if is_identifier(word) else 1.0)
    return weights


def _saturated(occurrences: int, length: int, mean_length: float) -> float:
    return occurrences * (K1 + 1.0) / (occurrences + K1 * (1.0 - B + B * length / mean_length))
