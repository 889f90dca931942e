"""The same memories laid out twice, each on a Chroma server of its own: our namespace, and one collection."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any, Protocol

import chromadb

from benchmarks.generated_memories import DIMENSION, NOISE, Customer, Memories
from memory.chroma import WRITE_BATCH, Chroma
from memory.clock import Deadline
from memory.embedding import Embedder, EmbedderChoice, EmbedderIdentity, Source, Vector
from memory.engine import Engine
from memory.namespace import Namespace
from memory.records import Memory
from memory.scope import Scope
from memory.settings import DEFAULT_SHARDS, ChromaSettings
from memory.store import MemoryStore, Stored

RESULTS = 10
"""Hits of one search."""
TIMEOUT_SECONDS = 240.0


GENERATED = EmbedderIdentity(Source.BUILTIN, "", "generated")


class KnownVectors:
    """An embedder that looks vectors up, so that what is timed is not the model.

    Args:
        identity: what it passes for.

    Attributes:
        vectors: of texts that are going to be asked for or remembered.
    """

    def __init__(self, identity: EmbedderIdentity = GENERATED) -> None:
        self.identity = identity
        self.vectors: dict[str, Vector] = {}

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.vectors[text]

    def chosen(self) -> EmbedderIdentity | None:
        """See `memory.embedding.EmbedderChoice`."""
        return self.identity

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """See `memory.embedding.EmbedderChoice`."""
        return self


class OnlyEmbedder(Embedder, EmbedderChoice, Protocol):
    """An embedder that is all there is to choose from."""


class OurLayout:
    """A namespace of ours, through the engine and through the bare client.

    Args:
        url: of the server.
        name: of a namespace that nobody has used.
        embedder: of what is asked and remembered through the engine.
        shards: collections it gets.
    """

    def __init__(self, url: str, name: str, embedder: OnlyEmbedder, *, shards: int = DEFAULT_SHARDS) -> None:
        self.settings = ChromaSettings(
            url=url, namespace=name, timeout_seconds=TIMEOUT_SECONDS, shards=shards
        )
        self.embedder = embedder
        self._namespace = Namespace(Chroma(self.settings, Deadline.after(TIMEOUT_SECONDS)), self.settings)
        self._about = self._namespace.start(embedder.identity, DIMENSION, noise=NOISE)
        self._client = chromadb.HttpClient(host=url)
        self._handles: dict[str, Any] = {}

    def engine(self) -> Engine:
        """One for each call, as the nodes have it."""
        return Engine(self.settings, self.embedder)

    def write(self, rows: Sequence[tuple[Scope, Stored]]) -> None:
        """Write many rows as an import does: a collection's together."""
        store = MemoryStore(self._namespace, self._about)
        vectors = {memory.memory_id: vector for _, (memory, vector) in rows}
        self._namespace.chroma.renew()
        for batch in store.batches([(scope, memory) for scope, (memory, _) in rows]):
            store.write_all([(scope, (memory, vectors[memory.memory_id])) for scope, memory in batch])
            self._namespace.chroma.renew()

    def query(self, customer: Customer, vector: Vector) -> list[str]:
        """The least a recall can cost here: one query of the client's for the customer's key."""
        scope = customer.scope
        found = self.collection(scope).query(
            query_embeddings=[vector], n_results=RESULTS, where={"scope": scope.key}
        )
        return list(found["ids"][0])

    def upsert_and_get(self, scope: Scope, row_id: str, text: str, vector: Vector) -> None:
        """The least that remembering one memory can cost here; the row belongs to no customer."""
        columns = {"scope": f"bare-{scope.key}", "customer_id": "nobody", "fixed": "{}"}
        collection = self.collection(scope)
        collection.upsert([row_id], embeddings=[vector], documents=[text], metadatas=[columns])
        if collection.get(ids=[row_id])["documents"] != [text]:
            raise SystemExit("a bare upsert was not read back")

    def collection(self, scope: Scope) -> Any:
        """The bare client's handle of the collection that holds a scope."""
        name = self._namespace.memories(scope.shard(self._about.shards), self._about.generation)
        if name not in self._handles:
            self._handles[name] = self._client.get_collection(name, embedding_function=None)
        return self._handles[name]


class SharedLayout:
    """One collection for all customers, filtered by customer: what is usual.

    Args:
        url: of the server.
        name: of a collection that does not exist.
    """

    def __init__(self, url: str, name: str) -> None:
        client = chromadb.HttpClient(host=url)
        self._collection: Any = client.create_collection(
            name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def write(self, rows: Sequence[tuple[Scope, Stored]]) -> None:
        """Upsert many rows, 500 at a time."""
        for start in range(0, len(rows), WRITE_BATCH):
            self._upsert([stored for _, stored in rows[start : start + WRITE_BATCH]])

    def query(self, customer: Customer, vector: Vector) -> list[str]:
        """One filtered query."""
        found = self._collection.query(
            query_embeddings=[vector], n_results=RESULTS, where={"customer": customer.customer_id}
        )
        return list(found["ids"][0])

    def upsert_and_get(self, memory: Memory, vector: Vector) -> None:
        """Write one memory and read it."""
        self._upsert([(memory, vector)])
        if self._collection.get(ids=[memory.memory_id])["documents"] != [memory.text]:
            raise SystemExit("a bare upsert was not read back")

    def _upsert(self, rows: Sequence[Stored]) -> None:
        self._collection.upsert(
            ids=[memory.memory_id for memory, _ in rows],
            documents=[memory.text for memory, _ in rows],
            embeddings=[vector for _, vector in rows],
            metadatas=[_usual_metadata(memory) for memory, _ in rows],
        )


class OtherProcess:
    """A process that writes to our namespace, so that nothing in this one can know of it.

    Args:
        settings: of the namespace.
        seed: of the memories.
    """

    def __init__(self, settings: ChromaSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def write_one(self, customer: Customer) -> None:
        """Have it write one more memory of a customer, and wait for that."""
        self._pool.submit(_write_one, self._settings, self._seed, customer).result()

    def close(self) -> None:
        """End it."""
        self._pool.shutdown()


def _write_one(settings: ChromaSettings, seed: int, customer: Customer) -> None:
    namespace = Namespace(Chroma(settings, Deadline.after(TIMEOUT_SECONDS)), settings)
    about = namespace.about()
    if about is None:
        raise SystemExit("the namespace is not there")
    memory, vector = Memories(seed).more(customer, 0)
    MemoryStore(namespace, about).write(customer.scope, [(memory, vector)])


def _usual_metadata(memory: Memory) -> Mapping[str, str | float]:
    return {
        "customer": memory.customer_id,
        "conversation": memory.conversation_id,
        "role": str(memory.role),
        "created_at": memory.recorded_at,
    }


def in_turns(rounds: Iterable[Mapping[str, Callable[[], object]]]) -> dict[str, list[float]]:
    """Time named calls round by round; who goes first changes, so that noise meets all.

    Returns:
        Seconds of each call by name, in the order of the rounds.
    """
    seconds: dict[str, list[float]] = {}
    for number, calls in enumerate(rounds):
        for name in turned(list(calls), number):
            started = time.perf_counter()
            calls[name]()
            seconds.setdefault(name, []).append(time.perf_counter() - started)
    return seconds


def rate(calls: Sequence[Callable[[], object]], *, at_once: int) -> float:
    """Calls a second, when so many callers make these calls, each the next one that is left."""
    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()
    return len(calls) / (time.perf_counter() - started)


def turned(names: Sequence[str], number: int) -> list[str]:
    """Who goes first in a round and who follows: each is first as often as the others."""
    first = number % len(names)
    return [*names[first:], *names[:first]]
