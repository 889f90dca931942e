"""The interface of an embedder, and the name a namespace remembers it by."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

type Vector = Sequence[float]


def is_vector(value: object) -> bool:
    """Whether a service's answer is a vector: a list of finite numbers, not empty."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(x, int | float) and math.isfinite(x) for x in value)
    )


class Source(StrEnum):
    """Where an embedding model runs."""

    BUILTIN = "builtin"
    OPENAI_COMPATIBLE = "openai_compatible"
    DIFY = "dify"


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Which embedding model it is; two equal ones give comparable vectors.

    Attributes:
        source: where it runs.
        provider: Dify's name of the model's provider; "" elsewhere.
        model: the model's name.
    """

    source: Source
    provider: str
    model: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.source, self.provider, self.model) if part)


BUILTIN = EmbedderIdentity(Source.BUILTIN, "", "universal-sentence-encoder-multilingual-3")


class Embedder(Protocol):
    """Turns texts into vectors. Building one reads no file and opens no connection."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model it is."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, for texts that are stored.

        Raises:
            SetupError, ServiceError, TextRefused: the model cannot or will not do it.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question; same errors as `embed_documents`."""
        ...


class EmbedderChoice(Protocol):
    """What the settings of a call allow the engine to embed with."""

    def chosen(self) -> EmbedderIdentity | None:
        """The model that was chosen on purpose; None if the namespace's own, or the default, will do."""
        ...

    def open(self, identity: EmbedderIdentity) -> Embedder:
        """An embedder for a model.

        Raises:
            EmbedderMismatch: the settings of this call lead to another model.
            EmbedderUnavailable: the model cannot be reached from this call at all.
        """
        ...


def cosine(a: Vector, b: Vector) -> float:
    """The cosine of two vectors of one length, -1 to 1; 0 where one of them is nothing but zeros."""
    size = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else 0.0
