"""How good a ranking is: recall and nDCG with binary gains, and their means over questions."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.data_sets import DataSet, Question


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system answered.

    Attributes:
        ranked: ids of turns, best first, none twice.
        seconds: the call took.
        embedding_seconds: of these, for the question's vector.
    """

    ranked: tuple[str, ...]
    seconds: float
    embedding_seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """A question and its answers.

    Attributes:
        question: what was asked.
        nearest: the nearest memories, whatever they score.
        usual: those that pass the system's usual threshold; None where that was not asked for.
    """

    question: Question
    nearest: Answer
    usual: Answer | None


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over questions that have evidence.

    Attributes:
        questions: how many.
        recall_5, recall_10, ndcg_10: see the functions below.
        first: share of questions whose first hit is evidence.
        milliseconds, milliseconds_without_embedding: medians of a call.
    """

    questions: int
    recall_5: float
    recall_10: float
    ndcg_10: float
    first: float
    milliseconds: float
    milliseconds_without_embedding: float


@dataclass(frozen=True, slots=True)
class Restraint:
    """What the usual threshold does.

    Attributes:
        unanswerable, answerable: questions without and with evidence.
        silent: share of the unanswerable for which nothing came back.
        kept: share of the answerable for which some of their evidence came back.
    """

    unanswerable: int
    answerable: int
    silent: float
    kept: float


def recall_at(k: int, ranked: Sequence[str], evidence: frozenset[str]) -> float:
    """Share of the evidence among the first k."""
    return len(evidence.intersection(ranked[:k])) / len(evidence)


def ndcg_at(k: int, ranked: Sequence[str], evidence: frozenset[str]) -> float:
    """Normalised discounted gain of the first k: a hit at place i, from 1, gains 1 / log2(i + 1)."""
    gain = sum(1 / math.log2(place + 2) for place, turn in enumerate(ranked[:k]) if turn in evidence)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(evidence))))


def scores(results: Sequence[Result]) -> Scores:
    """The means of some results, one at least, all with evidence."""
    rankings = [(result.nearest.ranked, result.question.evidence) for result in results]
    answers = [result.nearest for result in results]
    return Scores(
        len(results),
        statistics.fmean(recall_at(5, *ranking) for ranking in rankings),
        statistics.fmean(recall_at(10, *ranking) for ranking in rankings),
        statistics.fmean(ndcg_at(10, *ranking) for ranking in rankings),
        statistics.fmean(recall_at(1, ranked, evidence) > 0 for ranked, evidence in rankings),
        statistics.median(1_000 * answer.seconds for answer in answers),
        statistics.median(1_000 * (answer.seconds - answer.embedding_seconds) for answer in answers),
    )


def by_group(data: DataSet, results: Iterable[Result]) -> dict[str, Scores]:
    """The scores of each category, part and the whole, by name; the whole comes last."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        for group in data.groups(result.question) if result.question.evidence else []:
            groups.setdefault(group, []).append(result)
    names = sorted(groups, key=lambda name: (name == data.whole, name))
    return {name: scores(groups[name]) for name in names}


def restraint(results: Sequence[Result]) -> Restraint | None:
    """What the usual threshold does; None where it was not asked for."""
    answers = [(result.question.evidence, result.usual.ranked) for result in results if result.usual]
    silent = [not ranked for evidence, ranked in answers if not evidence]
    kept = [not evidence.isdisjoint(ranked) for evidence, ranked in answers if evidence]
    if not silent or not kept:
        return None
    return Restraint(len(silent), len(kept), statistics.fmean(silent), statistics.fmean(kept))


def as_json(scored: Scores | Restraint) -> dict[str, float]:
    """Figures by name."""
    return {name: round(value, 4) for name, value in asdict(scored).items()}
