"""The engine: remember, recall, forget, link. Each verb resolves who is meant first, then does one thing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from functools import partial

from memory import call_log
from memory.about import About
from memory.administration import Administration
from memory.barring import Barring
from memory.call_log import CallLog, logged
from memory.chroma import Chroma
from memory.clock import Clock, Deadline, system_clock
from memory.content import Note, Skipped, Statement
from memory.context import build
from memory.embedding import EmbedderChoice
from memory.embedding.patient import PatientEmbedder
from memory.embedding.remembered import NamespaceEmbedders
from memory.erasing import Erasing
from memory.erasures import TICKET, Task
from memory.extraction.model import LanguageModel
from memory.forgetting import (
    MIN_SCORE,
    Forgotten,
    Phase,
    Reach,
    Request,
    select,
    task_of,
)
from memory.identity import Caller, Identity, Linked, Resolved
from memory.importing import Handling, Importer
from memory.learners import Learners
from memory.ledger import Ledger
from memory.limits import UNLIMITED, Limits
from memory.links import LinkStore
from memory.merging import Merging, scope_among
from memory.namespace import Namespace
from memory.pacing import background, in_foreground
from memory.policy import Policy, Redactor
from memory.recalling import Hit, Question, Recalled, recall
from memory.receipts import Receipt, Receipts
from memory.records import Memory
from memory.remembering import Outcome, Remembered, Writing, remember
from memory.settings import ChromaSettings
from memory.signposts import follows_signposts, looking
from memory.slots import heads
from memory.store import MemoryStore
from memory.text import PART_LENGTH, clean
from memory.ticket_results import Imported, taken_back
from memory.tombstones import Tombstones
from tickets.model import Ticket


class Engine:
    """The memory of one namespace, for one call. Building it opens nothing and reads no environment.

    Args:
        settings: the Chroma server and the namespace.
        embedders: which embedding models this call can use.
        language_model: extracts facts; None where no call asks for that.
        policy: what is redacted, kept for how long, and sure enough.
        limits: which customers and tickets this call may touch.
        clock: gives the time; for tests.
    """

    def __init__(
        self,
        settings: ChromaSettings,
        embedders: EmbedderChoice,
        *,
        language_model: LanguageModel | None = None,
        policy: Policy | None = None,
        limits: Limits = UNLIMITED,
        clock: Clock = system_clock,
    ) -> None:
        deadline = Deadline.after(settings.timeout_seconds)
        self._namespace = Namespace(Chroma(settings, deadline), settings, limits)
        self._links = LinkStore(self._namespace)
        self._ledger = Ledger(self._namespace)
        self._embedders = NamespaceEmbedders(self._namespace, embedders)
        self._policy = policy or Policy()
        self._learners = Learners(language_model, self._namespace.chroma, self._policy.min_confidence)
        self._clock = clock
        self._receipts = Receipts(self._namespace, self._policy.hash_key)
        self._erasing = Erasing(self._namespace, self._links, self._ledger, self._receipts, clock)

    # --- the four verbs --------------------------------------------------------------------------

    @in_foreground
    @logged("remember")
    @follows_signposts
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
        if note.extracts:
            self._learners.check()
        now = self._clock()
        redactor = Redactor(self._policy)
        statements = [replace(s, text=redactor.text(s.text)) for s in statements]
        self._namespace.chroma.renew()  # our own work on a long text is not the server's time
        about = self._namespace.about()
        with self._erasing.watched(self._store(about)) as known:
            resolved = self._identity(known).resolve(caller)
        call_log.lap("resolve")
        if not statements:
            return _remembered([], skipped, resolved, redactor, 0)
        embedder, about = self._embedders.to_write()
        tokens = 0
        with self._erasing.watched(MemoryStore(self._namespace, about)) as store:
            if note.extracts:
                learned = self._learners.learn(store, resolved.scope, statements, note, redactor, now=now)
                statements, tokens = list(learned.statements), learned.tokens
                skipped = [*skipped, *learned.skipped]
                call_log.lap("extract")
            else:
                attribute = redactor.text(note.attribute)
                at = note.occurred_at
                statements = [replace(s, attribute=attribute, occurred_at=at) for s in statements]
            identity = self._identity(store)
            resolved = identity.resolve_to_write(caller, now=now)
            writing = self._writing(resolved, note, redactor, now=now)
            outcomes = remember(store, embedder, writing, statements, now=now)
            resolved = identity.follow(resolved)
        call_log.lap("write")
        return _remembered(outcomes, skipped, resolved, redactor, tokens)

    @in_foreground
    def recall(self, caller: Caller, question: Question) -> Recalled:
        """Find what is known of the caller's customer, best first, with a block for the prompt.

        It writes nothing but to finish what another call left half done; of a namespace nothing was ever
        stored in it finds nothing. While the embedding service fails it compares words alone, and says so.

        Raises:
            ConversationMismatch, SetupError, TextRefused; ServiceError of the Chroma server.
        """
        with logged("recall") as log:
            return self._recall(log, caller, replace(question, query=self._asked(question.query)))

    @follows_signposts
    def _recall(self, log: CallLog, caller: Caller, question: Question) -> Recalled:
        now = self._clock()
        hits: list[Hit] = []
        standing: list[Memory] = []
        degraded = ""
        self._namespace.chroma.renew()
        with self._erasing.watched(self._store(self._namespace.about())) as store:
            resolved = self._identity(store).resolve(caller)
            log.lap("resolve")
            if store is not None:
                embedder = PatientEmbedder(self._embedders.of(store.about))
                question = replace(question, near_case_id=resolved.case_id)
                hits, standing = recall(store, embedder, resolved.scope, question, now=now)
                degraded = embedder.fault_code
        log.lap("search")
        answers = [hit.memory for hit in hits]
        context = build(answers, standing, max_tokens=question.max_tokens, now=now)
        log.lap("context")
        log.note(found=len(hits), standing=len(standing), degraded=degraded)
        log.note(memory_ids=[m.memory_id for m in answers], scores=[round(hit.total, 4) for hit in hits])
        return Recalled(tuple(hits), context, resolved.scope.customer_id, resolved.is_linked, degraded)

    @in_foreground
    @logged("forget")
    @follows_signposts
    def forget(self, caller: Caller, request: Request) -> Forgotten:
        """Show, or delete and read back, what a request means within the caller's customer.

        Raises:
            MemoryIdsRequired: a deletion by query; a preview's ids are needed.
            ParameterMissing, ConversationMismatch, ForgetUnverified, SetupError, ServiceError: of a deletion
                cut short, the next call goes on.
        """
        request.check()
        now = self._clock()
        about = self._namespace.about()
        matched: list[Memory] = []
        missing = request.memory_ids
        receipt: Receipt | None = None
        with self._erasing.watched(self._store(about)) as store:
            identity = self._identity(store)
            resolved = identity.resolve(caller)
            is_deletion = request.phase is Phase.DELETE
            if is_deletion and request.is_whole:
                identity.gather(resolved.scope)
            if store is not None:
                matched, missing = self._matched(store, resolved, request, now=now)
            if store is not None and is_deletion:
                task = task_of(resolved, request)
                receipt = self._erasing.erase(store, resolved.scope, task, requested_at=now)
        call_log.note(matched=len(matched), deleted=receipt.deleted if receipt else 0)
        return Forgotten(
            request,
            tuple(matched),
            tuple(missing),
            receipt,
            now,
            resolved.scope.customer_id,
            resolved.is_linked,
        )

    @in_foreground
    @logged("link_conversation")
    @looking()
    def link(self, caller: Caller, *, relink: bool = False) -> Linked:
        """Say which customer, and which case, a conversation belongs to; see `Identity.link`."""
        with self._erasing.watched(self._store(self._namespace.about())) as store:
            return self._identity(store).link(caller, relink=relink, now=self._clock())

    # --- tickets ---------------------------------------------------------------------------------

    @logged("import_tickets")
    def import_tickets(
        self,
        tickets: Sequence[Ticket],
        *,
        extracts: bool = False,
        zone: tzinfo = UTC,
        is_dry: bool = False,
        restores: bool = False,
    ) -> Imported:
        """Import a batch of past tickets; see `memory.importing`.

        The time limit starts anew with each batch.

        Args:
            tickets: any tickets, none twice.
            extracts: whether a language model picks facts, instead of keeping every message.
            zone: time zone of the customers, for words such as "yesterday".
            is_dry: whether to say what would happen and write nothing.
            restores: whether what was forgotten may come back.

        Returns:
            One result a ticket, in order, and what was redacted and spent.

        Raises:
            LanguageModelMissing: facts are to be extracted, and there is no language model.
            SetupError, ServiceError: the same batch again completes it.
        """
        if extracts:
            self._learners.check()
        self._namespace.chroma.renew()
        with background(), looking():
            embedder, about = self._embedders.to_write(may_start=not is_dry)
            store = MemoryStore(self._namespace, about)
            store.before_write = partial(self._erasing.before_write, store)
            merging = Merging(self._namespace, store)
            named = {(t.customer_id or "").strip() for t in tickets}
            scope_of = partial(scope_among, merging.owners(named))
            redactor = Redactor(self._policy)
            learner = self._learners.of_tickets(store, redactor, zone) if extracts else None
            importer = Importer(
                store,
                self._links,
                self._ledger,
                embedder,
                scope_of,
                Handling(redactor, self._policy, self._namespace.chroma.renew, learner, is_dry),
                Barring(Tombstones(self._namespace, about.salt), restores=restores),
            )
            results = importer.run(tickets, now=self._clock())
            if not is_dry:
                merging.owners(named)  # brings what was written for one that was merged meanwhile
            results = taken_back(results, tickets, self._erasing.settle(store), scope_of)
        if not is_dry:
            call_log.note(stored=sum(r.stored for r in results), removed=sum(r.removed for r in results))
        return Imported(tuple(results), redactor.counts, learner.tokens if learner else 0)

    @in_foreground
    @logged("forget_ticket")
    @follows_signposts
    def forget_ticket(self, source: str, ticket_id: str) -> Receipt | None:
        """Delete what was imported from a ticket, read back, and its entry; no import brings it back.

        Returns:
            The receipt; None where nothing had been imported.

        Raises:
            ForgetUnverified: some of it could still be read afterwards.
        """
        about = self._namespace.about()
        entry = self._ledger.find((source, ticket_id))
        if entry is None or about is None:
            return None
        with self._erasing.watched(MemoryStore(self._namespace, about)) as store:
            if Merging(self._namespace, store).owner(entry.customer_id) != entry.customer_id:
                entry = self._ledger.find(entry.key) or entry
            shared = self._ledger.held([entry.scope], apart_from={entry.key})
            own = [row for row in entry.row_ids if row not in shared and "." not in row]
            task = Task(reach=TICKET, source=source, ticket_id=ticket_id, memory_ids=tuple(own))
            receipt = self._erasing.erase(store, entry.scope, task, requested_at=self._clock())
        call_log.note(deleted=receipt.deleted)
        return receipt

    # --- looking around and upkeep ---------------------------------------------------------------

    @property
    def administration(self) -> Administration:
        """What administrators do with the whole namespace, and looking around in it."""
        return Administration(
            self._namespace,
            self._links,
            self._ledger,
            self._embedders,
            self._receipts,
            self._erasing,
            self._clock,
        )

    def _asked(self, query: str) -> str:
        """A query as it may be searched for: clean, without secrets, and no longer than a text that is."""
        return Redactor(self._policy).text(clean(query[: 10 * PART_LENGTH]))[:PART_LENGTH]

    # --- remembering -----------------------------------------------------------------------------

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

    def _store(self, about: About | None) -> MemoryStore | None:
        """The memories, for one call; None where nothing was ever stored."""
        return None if about is None else MemoryStore(self._namespace, about)

    def _identity(self, store: MemoryStore | None) -> Identity:
        return Identity(self._links, store, Merging(self._namespace, store))

    # --- forgetting by query ---------------------------------------------------------------------

    def _matched(
        self, store: MemoryStore, resolved: Resolved, request: Request, *, now: float
    ) -> tuple[list[Memory], tuple[str, ...]]:
        """What a request means, one row a statement; a query is looked up here, the rest by ids."""
        if request.reach is Reach.MATCHING and request.query.strip() and not request.memory_ids:
            query = self._asked(request.query)
            question = Question(query=query, limit=100, min_score=MIN_SCORE, include_superseded=True)
            hits, _ = recall(store, self._embedders.of(store.about), resolved.scope, question, now=now)
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
    remembered = Remembered(
        tuple(outcomes),
        tuple(skipped),
        resolved.scope.customer_id,
        resolved.is_linked,
        redactor.counts,
        tokens,
    )
    call_log.note(**remembered.counts)
    return remembered
