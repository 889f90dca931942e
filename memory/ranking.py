"""How well each memory answers a query: words and meaning, each of the memory and of what was said around it.

The order comes from the four parts, each as a share of its greatest value, which does not depend on how one
embedding model or one question spreads its values; where most memories are no nearer than texts that have
nothing to do with each other, the nearer half of them keeps its order by meaning all the same. How relevant
the best memory is comes from the parts as they are, on a scale that depends neither on the model nor on what
else the memory holds, so that one threshold serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory.corpus import Corpus
from memory.lexical import WordMatch
from memory.periods import Mention
from memory.records import Memory
from memory.terms import terms

if TYPE_CHECKING:
    from memory.neighbours import Numbers

DENSE_SHARE = 0.5
"""Of the relevance; the rest is the lexical share."""
NAMED_DENSE_SHARE = 0.2
"""The same where an identifier of the query stands in a memory: meaning cannot tell identifiers apart."""
CONTEXT_SHARE = 0.5
"""Of either half that is due to the neighbours; the rest is due to the memory alone."""
PERIOD_WEIGHT = 2.0
"""What lying in the time a question names counts, against a word that is as rare."""
RECENCY_BOOST = 0.02
"""What the newest memory is raised by, of what is missing to 1; the oldest by nothing."""
CASE_BOOST = 0.04
"""The same for a memory of the case the caller is in."""
CURRENT_BOOST = 0.02
"""The same for the current value of a slot."""
AGENT_SHARE = 0.85
"""What an agent's own words count: what is asked about a customer is answered by the customer's."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score and its parts, each 0 to 1.

    Attributes:
        total: what a caller sees: how relevant the best memory is, times how near this one comes to it.
        dense: relevance by meaning.
        lexical: relevance by words.
        recency: 1 for the newest memory, 0 for the oldest.
        case: 1 for a memory of the case the caller is in.
        current: 1 for the current value of a slot.
    """

    total: float
    dense: float
    lexical: float
    recency: float = 0.0
    case: float = 0.0
    current: float = 0.0


EXACT = Score(1.0, 1.0, 1.0)
"""Of a memory that says the very words of the query."""


def score(
    query: str,
    corpus: Corpus,
    similarity: Sequence[float],
    *,
    noise: float,
    case_id: str = "",
    mentions: Sequence[Mention] = (),
) -> list[Score]:
    """Score the memories of one scope against a query.

    Args:
        query: not blank.
        corpus: the memories.
        similarity: cosine of each memory's vector with the query's, -1 to 1.
        noise: the cosine of texts that have nothing to do with each other, of the embedding model.
        case_id: the case the caller is in; "" for none.
        mentions: the times the query speaks of.

    Returns:
        One score a memory, in the same order.
    """
    import numpy as np

    if len(corpus.rows) != len(similarity):
        raise ValueError("each row needs its similarity")
    if not corpus.rows:
        return []
    neighbours = corpus.neighbours
    cosines = np.array(similarity, float)
    near = np.clip((cosines - noise) / (1.0 - noise), 0.0, 1.0)
    nearer = np.clip(cosines - min(noise, float(np.median(cosines))), 0.0, None)
    match = WordMatch(
        terms(query),
        corpus,
        optional={term for mention in mentions for term in terms(mention.words)},
        marks=[(PERIOD_WEIGHT, _lies_in(mentions, corpus.rows))] if mentions else [],
    )
    meaning = (nearer, neighbours.mean(nearer))
    words = (match.alone(), match.together())
    dense, lexical = _mixed(near, neighbours.mean(near)), _mixed(*words)
    share = np.where(corpus.by_agent, AGENT_SHARE, 1.0)
    recency, case, current = corpus.recency, corpus.of_case(case_id), corpus.current
    boost = RECENCY_BOOST * recency + CASE_BOOST * case + CURRENT_BOOST * current
    dense_share = NAMED_DENSE_SHARE if match.finds_identifier else DENSE_SHARE
    standing = share * _fused(
        _mixed(*map(_relative, meaning)), _mixed(*map(_relative, words)), dense_share=dense_share
    )
    standing += (1.0 - standing) * boost
    best = float((share * _fused(dense, lexical, dense_share=dense_share)).max())
    total = best * _relative(standing)
    parts = (values.tolist() for values in (total, dense, lexical, recency, case, current))
    return [Score(*of_one) for of_one in zip(*parts, strict=True)]


def _mixed(alone: Numbers, together: Numbers) -> Numbers:
    return (1.0 - CONTEXT_SHARE) * alone + CONTEXT_SHARE * together


def _fused(dense: Numbers, lexical: Numbers, *, dense_share: float) -> Numbers:
    return dense_share * dense + (1.0 - dense_share) * lexical


def _relative(values: Numbers) -> Numbers:
    """The values as shares of the greatest; zeros where that is 0."""
    greatest = float(values.max())
    return values / greatest if greatest else values


def _lies_in(mentions: Sequence[Mention], rows: Sequence[Memory]) -> Numbers:
    """1 for the rows that were so at one of the times."""
    import numpy as np

    moments = (datetime.fromtimestamp(row.occurred_at, UTC) for row in rows)
    return np.array([float(any(mention.period.holds(m) for mention in mentions)) for m in moments])
