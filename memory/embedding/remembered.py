"""The embedder a namespace remembers: chosen at its first write, kept, and checked at every use."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memory.about import About
from memory.call_log import embedding
from memory.chroma import Chroma
from memory.embedding.model import BUILTIN, Embedder, EmbedderChoice, EmbedderIdentity, Vector
from memory.embedding.noise import PROBES, noise_of
from memory.errors import EmbedderDimensionMismatch, EmbedderMismatch, MemoryFault
from memory.namespace import Namespace


class NamespaceEmbedders:
    """Opens the embedder of one namespace.

    Args:
        namespace: which one.
        choice: what the settings of this call allow.
    """

    def __init__(self, namespace: Namespace, choice: EmbedderChoice) -> None:
        self._namespace = namespace
        self._choice = choice

    def to_write(self, *, may_start: bool = True) -> tuple[Embedder, About]:
        """The embedder of the namespace, which is started with the chosen one if it is new.

        Args:
            may_start: whether to start it; otherwise only what it would remember is told.

        Raises:
            EmbedderMismatch: another model was chosen than it remembers.
            SetupError, ServiceError: the model cannot be used.
        """
        about = self._namespace.about()
        if about is None:
            chroma = self._namespace.chroma
            embedder = _Checked(self._choice.open(self._choice.chosen() or BUILTIN), None, chroma)
            probes = embedder.embed_documents(PROBES)
            dimension, noise = len(probes[0]), noise_of(probes)
            if not may_start:
                return embedder, self._namespace.planned(embedder.identity, dimension, noise=noise)
            about = self._namespace.start(embedder.identity, dimension, noise=noise)
        return self.of(about), about

    def to_restore(self, stored: EmbedderIdentity | None, dimension: int) -> tuple[Embedder, About]:
        """The embedder of a namespace that takes a backup, which is started if it is new.

        That is the chosen one, else the backup's own where this call can use it, else the built-in one.

        Args:
            stored: the backup's; None if it has none.
            dimension: of the backup's vectors.

        Raises:
            EmbedderMismatch: another model was chosen than the namespace remembers.
            SetupError, ServiceError: the model cannot be used.
        """
        is_own = stored is not None and self._choice.chosen() in {None, stored} and self._can_open(stored)
        if stored is None or not is_own or self._namespace.about() is not None:
            return self.to_write()
        probes = _Checked(self._choice.open(stored), None, self._namespace.chroma).embed_documents(PROBES)
        about = self._namespace.start(stored, dimension, noise=noise_of(probes))
        return self.of(about), about

    def _can_open(self, identity: EmbedderIdentity) -> bool:
        try:
            self._choice.open(identity)
        except EmbedderMismatch:
            return False
        return True

    def of(self, about: About) -> Embedder:
        """The embedder a namespace remembers; same errors as `to_write`."""
        chosen = self._choice.chosen()
        if chosen is not None and not about.accepts(chosen):
            raise EmbedderMismatch(stored=str(about.embedder), offered=str(chosen))
        return _Checked(self._choice.open(about.embedder), about, self._namespace.chroma)

    def fault_code(self, about: About) -> str:
        """Code of what keeps this call from its embedder, as far as the settings tell; "" for nothing."""
        try:
            self.of(about)
        except MemoryFault as fault:
            return fault.code
        return ""


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

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        with self._own_time():
            vectors = self._embedder.embed_documents(texts)
        return [self._checked(vector) for vector in vectors]

    def embed_query(self, text: str) -> Vector:
        with self._own_time():
            vector = self._embedder.embed_query(text)
        return self._checked(vector)

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            with embedding():
                yield
        finally:  # a recall goes on without a model that failed, for which it may have waited long
            self._chroma.allow(time.monotonic() - started)

    def _checked(self, vector: Vector) -> Vector:
        if self._about is not None and len(vector) != self._about.dimension:
            raise EmbedderDimensionMismatch(
                offered=str(self.identity),
                offered_dimension=len(vector),
                stored=str(self._about.embedder),
                stored_dimension=self._about.dimension,
            )
        return vector
