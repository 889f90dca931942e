"""An embedder whose service may fail: a recall goes on by words alone, and says so."""

from collections.abc import Sequence

from memory.embedding.model import Embedder, EmbedderIdentity, Vector
from memory.errors import ServiceError

UNKNOWN: Vector = ()
"""In place of the vector of a query whose meaning is not known."""


class PatientEmbedder:
    """The same embedder, but a query gets `UNKNOWN` while the service fails.

    What the caller or the administrator has to change fails still: a text that is refused, a wrong key or
    model.

    Args:
        embedder: asked first.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fault_code = ""
        """Why a query's meaning is not known; "" while all are."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return self._embedder.identity

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`; this fails, since nothing is stored without its meaning."""
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        """The query's vector, or `UNKNOWN`."""
        try:
            return self._embedder.embed_query(text)
        except ServiceError as fault:
            self.fault_code = fault.code
            return UNKNOWN
