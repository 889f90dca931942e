"""The embedder a namespace remembers: chosen at its first write, kept, and checked at every use."""

import time
from collections.abc import Sequence

from memory.chroma import Chroma
from memory.embedding.model import BUILTIN, Embedder, EmbedderChoice, EmbedderIdentity, Vector
from memory.errors import EmbedderDimensionMismatch, EmbedderMismatch
from memory.namespace import About, Namespace


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
            dimension = len(embedder.embed_documents(["dimension"])[0])
            if not may_start:
                return embedder, self._namespace.planned(embedder.identity, dimension)
            about = self._namespace.start(embedder.identity, dimension)
        return self.of(about), about

    def of(self, about: About) -> Embedder:
        """The embedder a namespace remembers; same errors as `to_write`."""
        chosen = self._choice.chosen()
        if chosen is not None and chosen != about.embedder:
            raise EmbedderMismatch(stored=str(about.embedder), offered=str(chosen))
        return _Checked(self._choice.open(about.embedder), about, self._namespace.chroma)


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
        started = time.monotonic()
        vectors = self._embedder.embed_documents(texts)
        self._chroma.allow(time.monotonic() - started)
        return [self._checked(vector) for vector in vectors]

    def embed_query(self, text: str) -> Vector:
        started = time.monotonic()
        vector = self._embedder.embed_query(text)
        self._chroma.allow(time.monotonic() - started)
        return self._checked(vector)

    def _checked(self, vector: Vector) -> Vector:
        if self._about is not None and len(vector) != self._about.dimension:
            raise EmbedderDimensionMismatch(
                offered=str(self.identity),
                offered_dimension=len(vector),
                stored=str(self._about.embedder),
                stored_dimension=self._about.dimension,
            )
        return vector
