"""Engines on a Chroma server without a plugin process around them, with an embedder made of hashes."""

import hashlib
import math
from collections.abc import Callable, Sequence

from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Clock, Deadline, system_clock
from memory.content import Note, Statement
from memory.embedding import Embedder, EmbedderChoice, EmbedderIdentity, Source
from memory.embedding.model import Vector
from memory.embedding.noise import PROBES
from memory.engine import Engine
from memory.forgetting import Forgotten, Phase, Reach, Request
from memory.identity import Caller
from memory.ledger import Ledger
from memory.links import LinkStore
from memory.namespace import Namespace
from memory.policy import Policy
from memory.quotas import NO_QUOTAS, Quotas
from memory.recalling import Question
from memory.records import Kind, Memory, Role
from memory.remembering import Remembered
from memory.scope import Scope, hashed
from memory.settings import ChromaSettings
from memory.store import MemoryStore, Stored
from tickets.model import Ticket
from tickets.reader import read_tickets

DIMENSION = 32
KEY = "a-key-for-receipts"


def vector_of(text: str) -> list[float]:
    """A text's vector, of length 1: its words do not matter, only that it is always the same."""
    numbers = [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSION]]
    length = math.sqrt(sum(n * n for n in numbers))
    return [n / length for n in numbers]


class HashEmbedder:
    """An embedder without a model; `meanwhile` is called each time it works on documents."""

    identity = EmbedderIdentity(Source.BUILTIN, "", "hashes")

    def __init__(self, meanwhile: Callable[[], object] | None = None) -> None:
        self._meanwhile = meanwhile

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text."""
        if self._meanwhile is not None and tuple(texts) != PROBES:
            self._meanwhile()
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """The same for a query."""
        return vector_of(text)


class HashChoice:
    """Always that embedder."""

    def __init__(self, meanwhile: Callable[[], object] | None = None) -> None:
        self._embedder = HashEmbedder(meanwhile)

    def chosen(self) -> EmbedderIdentity:
        """Which."""
        return HashEmbedder.identity

    def open(self, _identity: EmbedderIdentity) -> Embedder:
        """It."""
        return self._embedder


class Place:
    """One namespace, with an engine for every call and a look at what lies in the store."""

    def __init__(
        self,
        url: str,
        namespace: str,
        *,
        clock: Clock = system_clock,
        policy: Policy | None = None,
        meanwhile: Callable[[], object] | None = None,
        shards: int = 4,
        quotas: Quotas = NO_QUOTAS,
        choice: EmbedderChoice | None = None,
    ) -> None:
        self.settings = ChromaSettings(
            url=url, namespace=namespace, timeout_seconds=200.0, shards=shards, quotas=quotas
        )
        self._clock, self._policy = clock, policy or Policy(hash_key=KEY)
        self._choice = choice or HashChoice(meanwhile)
        self.namespace = Namespace(Chroma(self.settings, Deadline.after(500.0)), self.settings)
        self.links, self.ledger = LinkStore(self.namespace), Ledger(self.namespace)

    @property
    def engine(self) -> Engine:
        """An engine for one call."""
        return Engine(self.settings, self._choice, policy=self._policy, clock=self._clock)

    @property
    def store(self) -> MemoryStore:
        """The memories, for one call."""
        about = self.namespace.about()
        assert about is not None
        return MemoryStore(self.namespace, about)

    def remember(
        self, customer_id: str, *texts: str, attribute: str = "", conversation_id: str = "", case_id: str = ""
    ) -> Remembered:
        """Store facts."""
        statements = [Statement(text, Role.CUSTOMER, Kind.SEMANTIC, i) for i, text in enumerate(texts)]
        note = Note(attribute=attribute, metadata={"note": f"about {texts[0]}"})
        caller = Caller.checked(customer_id, conversation_id, case_id)
        return self.engine.remember(caller, statements, note)

    def texts(self, customer_id: str) -> list[str]:
        """What a recall finds, history included, in order of the alphabet."""
        question = Question(limit=100, include_superseded=True)
        hits = self.engine.recall(Caller.checked(customer_id), question).hits
        return sorted(hit.memory.text for hit in hits)

    def erase(self, customer_id: str, reach: Reach = Reach.EVERYTHING, **more: str) -> Forgotten:
        """Forget for good."""
        caller = Caller.checked(customer_id, more.get("conversation_id"), more.get("case_id"))
        return self.engine.forget(caller, Request(reach=reach, phase=Phase.DELETE))

    def rows(self, scope: Scope) -> list[Row]:
        """Whatever lies in the store under a scope's keys: memories, links and entries of tickets."""
        collection = self.store.collection(scope)
        chroma = self.namespace.chroma
        found = [
            row
            for key in (scope.key, scope.history_key)
            for row in chroma.get(collection, where={"scope": key})
            if row.columns.get("stage") != "done"
        ]
        for beside in (self.namespace.links, self.namespace.ledger):
            found += chroma.get(beside, where={"customer": scope.key})
        return found


def rows_of(customer_id: str, texts: Sequence[str]) -> list[Stored]:
    """Facts of a customer with their vectors, to be written below the engine."""
    return [
        (
            Memory(
                memory_id=hashed(text),
                text=text,
                kind=Kind.SEMANTIC,
                customer_id=customer_id,
                occurred_at=0.0,
                recorded_at=0.0,
            ),
            vector_of(text),
        )
        for text in texts
    ]


def tickets_of(body: bytes) -> list[Ticket]:
    """The tickets of a canonical export."""
    return [item for item in read_tickets(body, format="canonical") if isinstance(item, Ticket)]
