"""Learning from tickets: facts instead of messages, several tickets in one question to the language model."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial

from memory.content import Statement
from memory.errors import MemoryFault, ServiceError
from memory.extraction.model import LanguageModel
from memory.learning import Learned, Said, learn
from memory.policy import Redactor
from memory.recalling import known_values
from memory.records import Kind, Role
from memory.scope import Scope
from memory.store import MemoryStore
from memory.text import clean
from tickets.model import Ticket

MESSAGES_A_QUESTION = 30
CHARACTERS_A_QUESTION = 12_000
"""What is shown to the language model at once, of one customer's tickets; a longer ticket goes alone."""
QUESTIONS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Lesson:
    """What came of one ticket.

    Attributes:
        statements: its facts; None where the language model failed.
        rejected: how many facts were left out.
        code: why it failed; "" where it did not.
    """

    statements: tuple[Statement, ...] | None
    rejected: int = 0
    code: str = ""


@dataclass(frozen=True, slots=True)
class _Question:
    scope: Scope
    tickets: tuple[int, ...]


class TicketLearner:
    """Asks a language model about tickets.

    Args:
        model: the language model.
        store: the memories, for the values a customer has already.
        redactor: goes over what is shown and what comes back.
        min_confidence: least confidence of a fact that is kept.
        zone: time zone of the customers, for words such as "yesterday".
        renew: starts the store's time limit anew, since a language model may take longer than that.
    """

    def __init__(
        self,
        model: LanguageModel,
        store: MemoryStore,
        redactor: Redactor,
        *,
        min_confidence: float,
        zone: tzinfo = UTC,
        renew: Callable[[], None],
    ) -> None:
        self._renew = renew
        self._model, self._store, self._redactor = model, store, redactor
        self._min_confidence, self._zone = min_confidence, zone
        self.tokens = 0

    def learn(self, tickets: Sequence[tuple[Scope, Ticket]], *, now: float) -> list[Lesson]:
        """Facts of each ticket, in order; tickets of one customer are asked about together.

        A failure of the service is that ticket's own: its lesson says so, the others go on.

        Raises:
            SetupError: the language model cannot be used at all.
        """
        said = [self._said(ticket) for _, ticket in tickets]
        questions = _questions([scope for scope, _ in tickets], said)
        lessons: list[Lesson] = [Lesson(())] * len(tickets)
        with ThreadPoolExecutor(QUESTIONS_AT_ONCE) as pool:
            asked = [
                pool.submit(copy_context().run, partial(self._ask, question, said, now=now))
                for question in questions
            ]
            for question, answer in zip(questions, asked, strict=True):
                answered, tokens = answer.result()
                self.tokens += tokens
                for index, lesson in zip(question.tickets, answered, strict=True):
                    lessons[index] = lesson
        self._renew()
        return lessons

    def _said(self, ticket: Ticket) -> Said:
        statements: list[Statement] = []
        times: list[float | None] = []
        for message in ticket.messages:
            text = clean(message.text)
            if not text or message.is_redacted or not message.is_public:
                continue
            role = Role.CUSTOMER if message.role == "customer" else Role.AGENT
            index = len(statements)
            words = self._redactor.text(text)
            statements.append(Statement(words, role, Kind.EPISODIC, index, origin=message.message_id))
            times.append(message.created_at.timestamp())
        return Said(tuple(statements), tuple(times), self._zone)

    def _ask(self, question: _Question, said: Sequence[Said], *, now: float) -> tuple[list[Lesson], int]:
        """The lessons of a question's tickets, and the tokens it took."""
        parts = [said[index] for index in question.tickets]
        together = Said(
            [s for part in parts for s in part.statements],
            [t for part in parts for t in part.times],
            self._zone,
        )
        self._renew()
        standing = known_values(self._store, question.scope, now=now)
        try:
            learned = learn(
                self._model,
                together,
                standing,
                self._redactor,
                min_confidence=self._min_confidence,
                now=now,
            )
        except ServiceError as fault:
            return [_failed(fault) for _ in parts], 0
        return _shared_out(learned, parts), learned.tokens


def _failed(fault: MemoryFault) -> Lesson:
    return Lesson(None, code=fault.code)


def _questions(scopes: Sequence[Scope], said: Sequence[Said]) -> list[_Question]:
    """Which tickets are asked about together: neighbours of one customer, up to the limits."""
    by_customer: dict[Scope, list[int]] = {}
    for index, scope in enumerate(scopes):
        if said[index].statements:
            by_customer.setdefault(scope, []).append(index)
    questions = []
    for scope, indexes in by_customer.items():
        group: list[int] = []
        messages = characters = 0
        for index in indexes:
            size = sum(len(s.text) for s in said[index].statements)
            count = len(said[index].statements)
            is_full = messages + count > MESSAGES_A_QUESTION or characters + size > CHARACTERS_A_QUESTION
            if group and is_full:
                questions.append(_Question(scope, tuple(group)))
                group, messages, characters = [], 0, 0
            group.append(index)
            messages, characters = messages + count, characters + size
        questions.append(_Question(scope, tuple(group)))
    return questions


def _shared_out(learned: Learned, parts: Sequence[Said]) -> list[Lesson]:
    """Each ticket's own facts, by the message each comes from."""
    lessons = []
    start = 0
    for number, part in enumerate(parts):
        end = start + len(part.statements)
        own = [
            statement
            for statement, origin in zip(learned.statements, learned.origins, strict=True)
            if start <= origin < end
        ]
        own = [replace(statement, index=index) for index, statement in enumerate(own)]
        lessons.append(Lesson(tuple(own), len(learned.skipped) if number == 0 else 0))
        start = end
    return lessons
