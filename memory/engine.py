"""The engine: remember, recall, forget, link. Each verb resolves who is meant first, then does one thing."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo

from memory.chroma import Chroma
from memory.clock import Clock, Deadline, system_clock
from memory.content import Note, Skipped, Statement
from memory.context import build
from memory.embedding import EmbedderChoice
from memory.embedding.remembered import NamespaceEmbedders
from memory.errors import (
    ConversationMismatch,
    ForgetUnverified,
    LanguageModelMissing,
)
from memory.extraction.model import LanguageModel
from memory.forgetting import (
    Forgotten,
    Phase,
    Reach,
    Request,
    erase,
    erase_entries,
    select,
)
from memory.identity import Caller, Identity, Linked, Resolved, scope_of_customer
from memory.import_learning import TicketLearner
from memory.importing import Handling, Imported, Importer
from memory.learning import Learned, Said, learn
from memory.ledger import Entry, Ledger
from memory.links import Link, LinkStore
from memory.listing import Page, page_of
from memory.namespace import About, Namespace
from memory.pacing import background, in_foreground
from memory.policy import Policy, Redactor
from memory.recalling import Hit, Question, Recalled, known_values, recall
from memory.records import Memory
from memory.remembering import Outcome, Remembered, Writing, remember
from memory.scope import Scope
from memory.settings import ChromaSettings
from memory.slots import heads
from memory.store import MemoryStore
from memory.text import PART_LENGTH, clean
from memory.upkeep import describe, expire
from tickets.model import Ticket


class Engine:
    """The memory of one namespace, for one call. Building it opens nothing and reads no environment.

    Args:
        settings: the Chroma server and the namespace.
        embedders: which embedding models this call can use.
        language_model: extracts facts; None where no call asks for that.
        policy: what is redacted, kept for how long, and sure enough.
        clock: gives the time; for tests.
    """

    def __init__(
        self,
        settings: ChromaSettings,
        embedders: EmbedderChoice,
        *,
        language_model: LanguageModel | None = None,
        policy: Policy | None = None,
        clock: Clock = system_clock,
    ) -> None:
        deadline = Deadline.after(settings.timeout_seconds)
        self._namespace = Namespace(Chroma(settings, deadline), settings)
        self._links = LinkStore(self._namespace)
        self._ledger = Ledger(self._namespace)
        self._embedders = NamespaceEmbedders(self._namespace, embedders)
        self._language_model = language_model
        self._policy = policy or Policy()
        self._clock = clock

    # --- the four verbs --------------------------------------------------------------------------

    @in_foreground
    def remember(
        self,
        caller: Caller,
        statements: Sequence[Statement],
        note: Note,
        *,
        skipped: Sequence[Skipped] = (),
    ) -> Remembered:
        """Store statements about the caller's customer, secrets replaced by marks before anything else.

        A conversation that is linked to nobody yet is linked to the customer given with it. The same
        statement twice is one memory; in a slot the newest value is current.

        Args:
            caller: whose memory.
            statements: what to store, oldest first.
            note: what holds for all of them.
            skipped: what was left out before, to be told in the answer.

        Raises:
            LanguageModelMissing: facts are to be extracted, and there is no language model.
            ConversationMismatch, SetupError, ServiceError, TextRefused: nothing is stored halfway.
        """
        if note.extracts and self._language_model is None:
            raise LanguageModelMissing
        now = self._clock()
        redactor = Redactor(self._policy)
        statements = [replace(s, text=redactor.text(s.text)) for s in statements]
        self._namespace.chroma.renew()  # our own work on a long text is not the server's time
        resolved = self._identity(self._namespace.about()).resolve(caller)
        if not statements:
            return _remembered([], skipped, resolved, redactor, 0)
        embedder, about = self._embedders.to_write()
        store = MemoryStore(self._namespace, about)
        tokens = 0
        if note.extracts:
            learned = self._learn(store, resolved.scope, statements, note, redactor, now=now)
            statements, tokens = list(learned.statements), learned.tokens
            skipped = [*skipped, *learned.skipped]
        else:
            attribute = redactor.text(note.attribute)
            statements = [replace(s, attribute=attribute, occurred_at=note.occurred_at) for s in statements]
        identity = Identity(self._links, store)
        resolved = identity.resolve_to_write(caller, now=now)
        writing = self._writing(resolved, note, redactor, now=now)
        outcomes = remember(store, embedder, writing, statements, now=now)
        return _remembered(outcomes, skipped, identity.follow(resolved), redactor, tokens)

    @in_foreground
    def recall(self, caller: Caller, question: Question) -> Recalled:
        """Find what is known of the caller's customer, best first, with a block for the prompt.

        It writes nothing, and of a namespace nothing was ever stored in it finds nothing.

        Raises:
            ConversationMismatch, SetupError, ServiceError, TextRefused.
        """
        now = self._clock()
        question = replace(question, query=self._asked(question.query))
        self._namespace.chroma.renew()
        about = self._namespace.about()
        resolved = self._identity(about).resolve(caller)
        hits: list[Hit] = []
        standing: list[Memory] = []
        if about is not None:
            store = MemoryStore(self._namespace, about)
            embedder = self._embedders.of(about)
            hits, standing = recall(store, embedder, resolved.scope, question, now=now)
        answers = [hit.memory for hit in hits]
        context = build(answers, standing, max_tokens=question.max_tokens, now=now)
        return Recalled(tuple(hits), context, resolved.scope.customer_id, resolved.is_linked)

    @in_foreground
    def forget(self, caller: Caller, request: Request) -> Forgotten:
        """Show, or delete and read back, what a request means within the caller's customer.

        Raises:
            MemoryIdsRequired: a deletion by query; a preview's ids are needed.
            ParameterMissing, ConversationMismatch, ForgetUnverified, SetupError, ServiceError.
        """
        request.check()
        now = self._clock()
        about = self._namespace.about()
        resolved = self._identity(about).resolve(caller)
        matched: list[Memory] = []
        missing = request.memory_ids
        deleted = 0
        store = MemoryStore(self._namespace, about) if about is not None else None
        is_deletion = request.phase is Phase.DELETE
        own_links = self._identity(about).gather(resolved.scope) if is_deletion and request.is_whole else []
        if store is not None and about is not None:
            matched, missing = self._matched(store, about, resolved, request, now=now)
            if is_deletion:
                deleted = erase(store, resolved, request, now=now)
        if is_deletion and request.reach is not Reach.MATCHING:
            erase_entries(self._ledger, resolved, request, matched)
        self._links.erase(own_links)
        return Forgotten(
            request,
            tuple(matched),
            deleted,
            tuple(missing),
            len(own_links),
            now,
            self._clock() if request.phase is Phase.DELETE else None,
            resolved.scope.customer_id,
            resolved.is_linked,
        )

    @in_foreground
    def link(self, caller: Caller, *, relink: bool = False) -> Linked:
        """Say which customer, and which case, a conversation belongs to; see `Identity.link`."""
        return self._identity(self._namespace.about()).link(caller, relink=relink, now=self._clock())

    # --- tickets ---------------------------------------------------------------------------------

    def import_tickets(
        self,
        tickets: Sequence[Ticket],
        *,
        extracts: bool = False,
        zone: tzinfo = UTC,
        is_dry: bool = False,
    ) -> Imported:
        """Import a batch of past tickets; see `memory.importing`.

        The time limit starts anew with each batch.

        Args:
            tickets: any tickets, none twice.
            extracts: whether a language model picks facts, instead of keeping every message.
            zone: time zone of the customers, for words such as "yesterday".
            is_dry: whether to say what would happen and write nothing.

        Returns:
            One result a ticket, in order, and what was redacted and spent.

        Raises:
            LanguageModelMissing: facts are to be extracted, and there is no language model.
            SetupError, ServiceError: the same batch again completes it.
        """
        if extracts and self._language_model is None:
            raise LanguageModelMissing
        self._namespace.chroma.renew()
        with background():
            embedder, about = self._embedders.to_write(may_start=not is_dry)
            store = MemoryStore(self._namespace, about)
            redactor = Redactor(self._policy)
            learner = self._learner(store, redactor, zone) if extracts else None
            importer = Importer(
                store,
                self._links,
                self._ledger,
                embedder,
                scope_of_customer,
                Handling(redactor, self._policy, self._namespace.chroma.renew, learner, is_dry),
            )
            results = importer.run(tickets, now=self._clock())
        return Imported(tuple(results), redactor.counts, learner.tokens if learner else 0)

    def _learner(self, store: MemoryStore, redactor: Redactor, zone: tzinfo) -> TicketLearner:
        if self._language_model is None:
            raise LanguageModelMissing
        return TicketLearner(
            self._language_model,
            store,
            redactor,
            min_confidence=self._policy.min_confidence,
            zone=zone,
            renew=self._namespace.chroma.renew,
        )

    def imported(self, source: str, ticket_id: str) -> Entry | None:
        """What was imported from a ticket, when, and as which memories; None for nothing."""
        self._namespace.about()
        return self._ledger.find((source, ticket_id))

    @in_foreground
    def forget_ticket(self, source: str, ticket_id: str) -> Entry | None:
        """Delete what was imported from a ticket, read back, and its entry.

        Returns:
            What had been imported; None for nothing.

        Raises:
            ForgetUnverified: some of it could still be read afterwards.
        """
        about = self._namespace.about()
        entry = self._ledger.find((source, ticket_id))
        if entry is None or about is None:
            return None
        store = MemoryStore(self._namespace, about)
        shared = self._ledger.held([entry.scope], apart_from={entry.key})
        own = [row for row in entry.row_ids if row not in shared]
        store.erase_all([(entry.scope, row) for row in own])
        remaining = [m for m in store.read(entry.scope, own) if m.source]
        if remaining:
            raise ForgetUnverified(remaining=len(remaining))
        self._ledger.erase([entry.key])
        return entry

    # --- upkeep ----------------------------------------------------------------------------------

    def expire(self) -> dict[str, int]:
        """Delete for good what has expired, in the whole namespace.

        Returns:
            Memories deleted, by kind.
        """
        about = self._namespace.about()
        return {} if about is None else expire(self._namespace, about, now=self._clock())

    # --- looking around --------------------------------------------------------------------------

    @in_foreground
    def list_memories(self, caller: Caller, page: Page) -> tuple[list[Memory], str, Resolved]:
        """One page of what is known of the caller's customer; see `memory.listing`."""
        about = self._namespace.about()
        resolved = self._identity(about).resolve(caller)
        if about is None:
            return [], "", resolved
        store = MemoryStore(self._namespace, about)
        listed, cursor = page_of(store, resolved.scope, page, now=self._clock())
        return listed, cursor, resolved

    @in_foreground
    def links(self, caller: Caller) -> list[Link]:
        """The link of the caller's conversation, or without one all links of the customer."""
        self._namespace.about()
        if caller.conversation_id:
            link = self._links.find(caller.conversation_id)
            if link is not None and caller.customer_id not in {"", link.customer_id}:
                raise ConversationMismatch
            return [] if link is None else [link]
        return self._links.of_customer(scope_of_customer(caller.customer_id))

    def describe(self) -> dict[str, str | int | None]:
        """The server's version, the namespace, its embedder, and how much it holds."""
        return describe(self._namespace)

    def _asked(self, query: str) -> str:
        """A query as it may be searched for: clean, without secrets, and no longer than a text that is."""
        return Redactor(self._policy).text(clean(query[: 10 * PART_LENGTH]))[:PART_LENGTH]

    # --- remembering -----------------------------------------------------------------------------

    def _learn(
        self,
        store: MemoryStore,
        scope: Scope,
        statements: Sequence[Statement],
        note: Note,
        redactor: Redactor,
        *,
        now: float,
    ) -> Learned:
        """The facts a language model finds in what was said."""
        if self._language_model is None:
            raise LanguageModelMissing
        started = time.monotonic()
        learned = learn(
            self._language_model,
            Said(statements, [note.occurred_at] * len(statements), note.zone),
            known_values(store, scope, now=now),
            redactor,
            min_confidence=self._policy.min_confidence,
            now=now,
        )
        self._namespace.chroma.allow(time.monotonic() - started)
        return learned

    def _writing(self, resolved: Resolved, note: Note, redactor: Redactor, *, now: float) -> Writing:
        lasts = note.expires_in_seconds
        return Writing(
            scope=resolved.scope,
            conversation_id=resolved.conversation_id,
            case_id=resolved.case_id,
            expires_at=None if lasts is None else now + lasts,
            metadata=redactor.metadata(dict(note.metadata or {})),
            policy=self._policy,
        )

    # --- plumbing --------------------------------------------------------------------------------

    def _identity(self, about: About | None) -> Identity:
        store = MemoryStore(self._namespace, about) if about is not None else None
        return Identity(self._links, store)

    # --- forgetting by query ---------------------------------------------------------------------

    def _matched(
        self, store: MemoryStore, about: About, resolved: Resolved, request: Request, *, now: float
    ) -> tuple[list[Memory], tuple[str, ...]]:
        """What a request means, one row a statement; a query is looked up here, the rest by ids."""
        if request.reach is Reach.MATCHING and request.query.strip() and not request.memory_ids:
            query = self._asked(request.query)
            question = Question(query=query, limit=100, include_superseded=True)
            hits, _ = recall(store, self._embedders.of(about), resolved.scope, question, now=now)
            return [h.memory for h in hits if request.admits(h.memory)], ()
        rows, missing = select(store, resolved, request)
        return heads(rows), missing


def _remembered(
    outcomes: Sequence[Outcome],
    skipped: Sequence[Skipped],
    resolved: Resolved,
    redactor: Redactor,
    tokens: int,
) -> Remembered:
    return Remembered(
        tuple(outcomes),
        tuple(skipped),
        resolved.scope.customer_id,
        resolved.is_linked,
        redactor.counts,
        tokens,
    )
