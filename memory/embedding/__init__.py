"""Embedding models behind one interface: what the engine needs to know of them."""

from memory.embedding.model import BUILTIN, Embedder, EmbedderChoice, EmbedderIdentity, Source, Vector

__all__ = ["BUILTIN", "Embedder", "EmbedderChoice", "EmbedderIdentity", "Source", "Vector"]
