"""The language model of a call, for what is said and for tickets; it is missed only where it is asked for."""

import time
from collections.abc import Sequence
from datetime import tzinfo

from memory.chroma import Chroma
from memory.content import Note, Statement
from memory.errors import LanguageModelMissing
from memory.extraction.model import LanguageModel
from memory.import_learning import TicketLearner
from memory.learning import Learned, Said, learn
from memory.policy import Redactor
from memory.recalling import known_values
from memory.scope import Scope
from memory.store import MemoryStore


class Learners:
    """What finds facts, for one call.

    Args:
        model: the language model; None where no call asks for one.
        chroma: whose time limit stands still while the model works.
        min_confidence: how sure of a fact the model has to be, 0 to 1.
    """

    def __init__(self, model: LanguageModel | None, chroma: Chroma, min_confidence: float) -> None:
        self._model, self._chroma, self._min_confidence = model, chroma, min_confidence

    def check(self) -> LanguageModel:
        """The model.

        Raises:
            LanguageModelMissing: there is none.
        """
        if self._model is None:
            raise LanguageModelMissing
        return self._model

    def of_tickets(self, store: MemoryStore, redactor: Redactor, zone: tzinfo) -> TicketLearner:
        """What finds the facts in tickets of customers in a time zone.

        Raises:
            LanguageModelMissing: there is no language model.
        """
        return TicketLearner(
            self.check(),
            store,
            redactor,
            min_confidence=self._min_confidence,
            zone=zone,
            renew=self._chroma.renew,
        )

    def learn(
        self,
        store: MemoryStore,
        scope: Scope,
        statements: Sequence[Statement],
        note: Note,
        redactor: Redactor,
        *,
        now: float,
    ) -> Learned:
        """The facts in what was said by or with a customer.

        Raises:
            LanguageModelMissing: there is no language model.
        """
        started = time.monotonic()
        learned = learn(
            self.check(),
            Said(statements, [note.occurred_at] * len(statements), note.zone),
            known_values(store, scope, now=now),
            redactor,
            min_confidence=self._min_confidence,
            now=now,
        )
        self._chroma.allow(time.monotonic() - started)
        return learned
