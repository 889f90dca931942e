"""The figures of recall, worked out by hand."""

import math
from dataclasses import replace

import pytest

from benchmarks.data_sets import DataSet, Question
from benchmarks.metrics import Answer, Restraint, Result, Scores, by_group, ndcg_at, recall_at, restraint


def result(
    category: str,
    evidence: str,
    ranked: str,
    *,
    part: str = "",
    usual: str | None = None,
    milliseconds: float = 10.0,
) -> Result:
    """A question with its answers; turns are letters."""
    question = Question(scope="s", text="?", evidence=frozenset(evidence), category=category, part=part)
    nearest = Answer(tuple(ranked), milliseconds / 1_000, milliseconds / 4_000)
    return Result(question, nearest, None if usual is None else Answer(tuple(usual), 0.0, 0.0))


@pytest.mark.parametrize(
    ("k", "ranked", "evidence", "expected"),
    [
        (5, "abcde", "a", 1.0),
        (5, "abcdef", "f", 0.0),
        (10, "abcdef", "fz", 0.5),
        (1, "ba", "ab", 0.5),
        (5, "", "a", 0.0),
    ],
)
def test_recall_is_the_share_of_the_evidence_that_was_found(
    k: int, ranked: str, evidence: str, expected: float
) -> None:
    """What lies beyond the first k does not count."""
    assert recall_at(k, ranked, frozenset(evidence)) == expected


@pytest.mark.parametrize(
    ("ranked", "evidence", "expected"),
    [
        ("abc", "a", 1.0),
        ("abc", "ab", 1.0),
        ("xa", "a", 1 / math.log2(3)),
        ("xab", "ab", (1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3))),
        ("bcdefghijka", "a", 0.0),
        ("abcdefghij", "abcdefghijkl", 1.0),
    ],
)
def test_ndcg_discounts_by_place(ranked: str, evidence: str, expected: float) -> None:
    """The best ranking of the first ten gains one, however much evidence there is."""
    assert ndcg_at(10, ranked, frozenset(evidence)) == pytest.approx(expected)


def test_scores_are_means_by_category_by_part_and_for_the_whole() -> None:
    """A category set apart has its own line only, and what has no answer is in none."""
    data = DataSet("d", (), (), apart=frozenset({"trick"}))
    results = [
        result("fact", "a", "a", part="tune", milliseconds=10),
        result("fact", "ab", "xxxxxa", part="held_out", milliseconds=20),
        result("trick", "a", "b", part="tune", milliseconds=30),
        result("none", "", "abc", part="tune"),
    ]
    scored = by_group(data, results)
    assert list(scored) == ["fact", "held_out", "trick", "tune", "all"]
    low = (1 / math.log2(7)) / (1 + 1 / math.log2(3))
    assert scored["all"].ndcg_10 == pytest.approx((1 + low) / 2)
    assert replace(scored["all"], ndcg_10=0.0) == Scores(2, 0.5, 0.75, 0.0, 0.5, 15.0, 11.25)
    assert scored["trick"] == Scores(1, 0.0, 0.0, 0.0, 0.0, 30.0, 22.5)
    assert scored["tune"].questions == 2


def test_restraint_counts_silence_and_what_it_costs() -> None:
    """Nothing for a question without an answer is right; for another the evidence has to be there still."""
    results = [
        result("none", "", "ab", usual=""),
        result("none", "", "ab", usual="a"),
        result("fact", "a", "ab", usual="ab"),
        result("fact", "ab", "ab", usual="b"),
        result("fact", "a", "ab", usual="b"),
        result("fact", "a", "ab", usual=""),
    ]
    assert restraint(results) == Restraint(2, 4, 0.5, 0.5)
    assert restraint([result("fact", "a", "a")]) is None
