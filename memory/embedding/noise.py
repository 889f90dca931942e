"""How alike an embedding model finds texts that have nothing to do with each other.

One model calls them .1 alike, another .7. Measured once, when a namespace is started, it makes the scores
of all models comparable.
"""

from collections.abc import Sequence
from itertools import combinations

from memory.embedding.model import Vector, cosine

PROBES = (
    "The parcel arrived with a dent in one corner.",
    "I would like to change the e-mail address of my account.",
    "Our office is closed on public holidays.",
    "The app closes by itself when I open the camera.",
    "Can I pay by invoice instead of card?",
    "My colleague will take over from June.",
    "The coffee machine leaks after cleaning.",
    "We moved to a new flat on the third floor.",
    "发票上的公司名称写错了。",
    "我想把会议改到下周三。",
    "耳机充电后还是没有声音。",
    "请问博物馆几点关门？",
)
"""Sentences as support hears them, none with a subject of another."""
HIGHEST = 0.95
"""A model that finds everything alike tells nothing; this keeps the scale from having no room."""


def noise_of(vectors: Sequence[Vector]) -> float:
    """The mean cosine of all pairs of vectors, 0 to 0.95.

    Args:
        vectors: of `PROBES`, in order.
    """
    cosines = [cosine(a, b) for a, b in combinations(vectors, 2)]
    return min(HIGHEST, max(0.0, sum(cosines) / len(cosines)))
