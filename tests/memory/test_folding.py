"""What repeats a better memory of its conversation is folded into it; a difference that matters is kept."""

from dataclasses import dataclass

import pytest

from memory.folding import folded
from memory.records import Kind, Memory


@dataclass(frozen=True, slots=True)
class _Hit:
    memory: Memory


def _hit(text: str, *, conversation_id: str = "c1") -> _Hit:
    return _Hit(
        Memory(
            memory_id=text,
            text=text,
            kind=Kind.EPISODIC,
            conversation_id=conversation_id,
            occurred_at=0.0,
            recorded_at=0.0,
        )
    )


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("My parcel has not come yet.", "my parcel has not come yet!!"),
        (
            "Hello, the washing machine leaks when it spins and the floor is wet",
            "Hello again the washing machine leaks when it spins and the floor is wet",
        ),
        ("包裹还没有收到。", "包裹还没有收到!"),
    ],
)
def test_a_repetition_is_folded(text: str, again: str) -> None:
    """The better one, which comes first, stays."""
    assert [hit.memory.text for hit in folded([_hit(text), _hit(again)], limit=9)] == [text]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The deployment of our service to the cluster is allowed on Fridays", "not"),
        ("The order is 10482", "10483"),
        ("Please send it", "back"),
        ("我们的服务可以在星期五部署到集群", "不"),
    ],
)
def test_a_difference_that_matters_is_kept(text: str, other: str) -> None:
    """A negation, a number, or one word of few."""
    assert len(folded([_hit(text), _hit(f"{text} {other}")], limit=9)) == 2


def test_another_conversation_is_not_folded() -> None:
    """The same complaint twice, months apart, is two events."""
    text = "The box is broken."
    assert len(folded([_hit(text), _hit(text, conversation_id="c2")], limit=9)) == 2


def test_without_a_conversation_nothing_is_folded() -> None:
    """There is no ticket they could both be of."""
    assert len(folded([_hit("Tea", conversation_id=""), _hit("tea", conversation_id="")], limit=9)) == 2


def test_no_more_are_kept_than_asked_for() -> None:
    """A repetition does not count towards the limit."""
    hits = [_hit("Tea, please."), _hit("tea please"), _hit("Or coffee."), _hit("Or water.")]
    assert [hit.memory.text for hit in folded(hits, limit=2)] == ["Tea, please.", "Or coffee."]
