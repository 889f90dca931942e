"""The engine: remember, recall, forget, link. Each verb resolves who is meant first, then does one thing."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from memory.chroma import Chroma
from memory.clock import Clock, Deadline, system_clock
from memory.content import Skipped, Statement
from memory.context import build
from memory.embedding import BUILTIN, Embedder, EmbedderChoice, EmbedderIdentity
from memory.errors import (
    ConversationMismatch,
    EmbedderDimensionMismatch,
    EmbedderMismatch,
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
from memory.identity import Caller, Identity, Linked, Resolved, scope_of_customer, scope_of_owner
from memory.import_learning import TicketLearner
from memory.importing import Handling, Imported, Importer
from memory.learning import Learned, Said, learn
from memory.ledger import Entry, Ledger
from memory.links import Link, LinkStore
from memory.listing import Page, page_of
from memory.namespace import About, Namespace
from memory.pacing import background, in_foreground
from memory.policy import Policy, Redactor
from memory.recalling import Hit, Question, Recalled, recall, standing_of
from memory.records import Memory, Metadata
from memory.remembering import Outcome, Remembered, Writing, remember, sweep
from memory.scope import Scope
from memory.settings import ChromaSettings
from memory.slots import heads, without_stale
from memory.store import MemoryStore
from memory.text import PART_LENGTH, clean
from tickets.model import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a call to remember says beside its statements.

    Attributes:
        attribute: the slot of the customer's own facts; "" for none.
        occurred_at: when they were so, seconds since 1970; None for now.
        expires_in_seconds: from now; None for what the policy says.
        metadata: the user's own.
        extracts: whether a language model picks the facts worth keeping, instead of keeping all as it is.
        zone: the customer's time zone, for words such as "yesterday".
    """

    attribute: str = ""
    occurred_at: float | None = None
    expires_in_seconds: float | None = None
    metadata: Metadata | None = None
    extracts: bool = False
    zone: tzinfo = UTC


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
        self._embedders = embedders
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
        now = self._clock()
        redactor = Redactor(self._policy)
        statements = [replace(s, text=redactor.text(s.text)) for s in statements]
        resolved = self._identity(self._namespace.about()).resolve(caller)
        if not statements:
            return _remembered([], skipped, resolved, redactor, 0)
        embedder, about = self._embedder_to_write()
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
        about = self._namespace.about()
        resolved = self._identity(about).resolve(caller)
        hits: list[Hit] = []
        standing: list[Memory] = []
        if about is not None:
            store = MemoryStore(self._namespace, about)
            embedder = self._embedder(about)
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
            erase_entries(self._ledger, resolved, matched, is_whole=request.is_whole)
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
        self._namespace.chroma.renew()
        with background():
            embedder, about = self._embedder_to_write(may_start=not is_dry)
            store = MemoryStore(self._namespace, about)
            redactor = Redactor(self._policy)
            learner = self._learner(store, redactor, zone) if extracts else None
            importer = Importer(
                store,
                self._links,
                self._ledger,
                embedder,
                scope_of_customer,
                Handling(redactor, self._policy, learner, is_dry),
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
        store.erase_all([(entry.scope, row) for row in entry.row_ids])
        remaining = store.read(entry.scope, [r for r in entry.row_ids if "." not in r])
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
        if about is None:
            return {}
        now = self._clock()
        store = MemoryStore(self._namespace, about)
        gone: Counter[str] = Counter()
        for shard in range(about.shards):
            self._namespace.chroma.renew()
            for customer_id, conversation_id in store.owners_of_expired(shard, now=now):
                scope = scope_of_owner(customer_id, conversation_id)
                gone.update(str(m.kind) for m in sweep(store, scope, now=now) if m.part == 0)
        return dict(gone)

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
        version = self._namespace.chroma.check()
        about = self._namespace.about()
        shards = 0 if about is None else about.shards
        return {
            "chroma_version": version,
            "namespace": self._namespace.name,
            "embedder": None if about is None else str(about.embedder),
            "dimension": None if about is None else about.dimension,
            "shards": shards,
            "rows": sum(self._namespace.count_rows(shards)),
            "links": self._namespace.chroma.count(self._namespace.links),
            "tickets": self._namespace.chroma.count(self._namespace.ledger),
        }

    def _asked(self, query: str) -> str:
        """A query as it may be searched for: clean, without secrets, and no longer than a text that is."""
        return Redactor(self._policy).text(clean(query)[:PART_LENGTH])

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
            standing_of(without_stale(store.live(scope))),
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

    # --- which embedder --------------------------------------------------------------------------

    def _embedder_to_write(self, *, may_start: bool = True) -> tuple[Embedder, About]:
        """The embedder of the namespace, which is started with the chosen one if it is new."""
        about = self._namespace.about()
        if about is None:
            embedder = _Checked(
                self._embedders.open(self._embedders.chosen() or BUILTIN), None, self._namespace.chroma
            )
            dimension = len(embedder.embed_documents(["dimension"])[0])
            if not may_start:
                return embedder, self._namespace.planned(embedder.identity, dimension)
            about = self._namespace.start(embedder.identity, dimension)
        return self._embedder(about), about

    def _embedder(self, about: About) -> Embedder:
        chosen = self._embedders.chosen()
        if chosen is not None and chosen != about.embedder:
            raise EmbedderMismatch(stored=str(about.embedder), offered=str(chosen))
        return _Checked(self._embedders.open(about.embedder), about, self._namespace.chroma)

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
            hits, _ = recall(store, self._embedder(about), resolved.scope, question, now=now)
            return [h.memory for h in hits if request.admits(h.memory)], ()
        rows, missing = select(store, resolved, request)
        return heads(rows), missing


class _Checked:
    """An embedder whose vectors are checked against what the namespace remembers.

    The time it takes is its own: it does not shorten what the database is allowed.
    """

    def __init__(self, embedder: Embedder, about: About | None, chroma: Chroma) -> None:
        self._embedder = embedder
        self._about = about
        self._chroma = chroma

    @property
    def identity(self) -> EmbedderIdentity:
        return self._embedder.identity

    def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        started = time.monotonic()
        vectors = self._embedder.embed_documents(texts)
        self._chroma.allow(time.monotonic() - started)
        return [self._checked(vector) for vector in vectors]

    def embed_query(self, text: str) -> Sequence[float]:
        started = time.monotonic()
        vector = self._embedder.embed_query(text)
        self._chroma.allow(time.monotonic() - started)
        return self._checked(vector)

    def _checked(self, vector: Sequence[float]) -> Sequence[float]:
        if self._about is not None and len(vector) != self._about.dimension:
            raise EmbedderDimensionMismatch(
                offered=str(self.identity),
                offered_dimension=len(vector),
                stored=str(self._about.embedder),
                stored_dimension=self._about.dimension,
            )
        return vector


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
