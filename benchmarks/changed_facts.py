"""What was so before is never told as what is so: facts that change, remembered in every order."""

import itertools
import random
from dataclasses import dataclass

from benchmarks.data_sets import SEED
from benchmarks.support_cases.cases import Case, Question
from memory.content import Note, read_content
from memory.embedding import EmbedderChoice
from memory.engine import Engine
from memory.identity import Caller
from memory.recalling import Question as Recall
from memory.settings import ChromaSettings


@dataclass(frozen=True, slots=True)
class Shown:
    """What recall and its context told of facts that changed.

    Attributes:
        questions: how many facts.
        current: of these, whose newest value was found.
        superseded: of these, whose older value was found or stood in the context.
    """

    questions: int
    current: int
    superseded: int


def changed_facts(url: str, namespace: str, embedders: EmbedderChoice, cases: tuple[Case, ...]) -> Shown:
    """Remember each fact that changed as an attribute, its values in a drawn order, and ask.

    Args:
        url, namespace: where; a namespace that nobody has used.
        embedders: which model.
        cases: the support cases; their questions of the category "changed" are asked.
    """
    settings = ChromaSettings(url=url, namespace=namespace, timeout_seconds=200.0)
    chance = random.Random(SEED)
    asked = [(case, q) for case in cases for q in case.questions if q.category == "changed"]
    for case, question in asked:
        values = [m for m in case.messages if m.message_id in (*question.evidence, *question.lures)]
        for message in chance.sample(values, len(values)):
            statements, skipped = read_content(message.text, kind=None)
            note = Note(attribute=question.question_id, occurred_at=message.at.timestamp())
            engine = Engine(settings, embedders)
            engine.remember(Caller.checked(case.customer_id), statements, note, skipped=skipped)
    told = [_told(Engine(settings, embedders), case, question) for case, question in asked]
    return Shown(len(told), sum(now for now, _ in told), sum(before for _, before in told))


def _told(engine: Engine, case: Case, question: Question) -> tuple[bool, bool]:
    """Whether the newest value is told, and whether an older one is."""
    found = engine.recall(Caller.checked(case.customer_id), Recall(query=question.text))
    texts = {m.message_id: " ".join(m.text.split()) for m in case.messages}
    shown = {hit.memory.text for hit in found.hits}
    block = " ".join(found.context.split())

    def is_told(ids: tuple[str, ...]) -> bool:
        return any(texts[i] in shown or texts[i] in block for i in ids)

    newest = max(itertools.chain(question.evidence), key=lambda i: _at(case, i))
    return is_told((newest,)), is_told(question.lures)


def _at(case: Case, message_id: str) -> float:
    return next(m.at.timestamp() for m in case.messages if m.message_id == message_id)
