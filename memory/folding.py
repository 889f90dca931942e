"""Folding: of several memories of one conversation that say the same again, the best one stands for all."""

from collections.abc import Iterable
from typing import Protocol

from memory.records import Memory
from memory.tokenizer import tokens

LEAST_OVERLAP = 0.9
"""Share of their words that two texts have in common when one repeats the other."""

_NEGATING_WORDS = "no not never none without nor don doesn didn isn wasn aren won can cannot couldn"
_NEGATIONS = frozenset(_NEGATING_WORDS.split())
_NEGATING_CHARACTERS = frozenset("不没沒未无無别別非")


class Found(Protocol):
    """Anything that holds a memory."""

    @property
    def memory(self) -> Memory:
        """The memory."""
        ...


def folded[T: Found](hits: Iterable[T], *, limit: int) -> list[T]:
    """The first hits that do not repeat a better one of the same conversation.

    A text that differs in a number, an identifier or a negation is no repetition.

    Args:
        hits: best first.
        limit: how many at the most.
    """
    kept: list[T] = []
    words: dict[str, list[frozenset[str]]] = {}
    for hit in hits:
        if len(kept) == limit:
            break
        conversation_id = hit.memory.conversation_id
        said = frozenset(tokens(hit.memory.text))
        earlier = words.setdefault(conversation_id, [])
        if conversation_id and any(_repeats(said, other) for other in earlier):
            continue
        earlier.append(said)
        kept.append(hit)
    return kept


def _repeats(one: frozenset[str], other: frozenset[str]) -> bool:
    if len(one & other) < LEAST_OVERLAP * len(one | other):
        return False
    return not any(map(_changes_the_meaning, one ^ other))


def _changes_the_meaning(word: str) -> bool:
    return (
        word in _NEGATIONS
        or not _NEGATING_CHARACTERS.isdisjoint(word)
        or any(character.isdigit() for character in word)
    )
