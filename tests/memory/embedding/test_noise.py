"""How alike a model finds unrelated texts."""

import pytest

from memory.embedding.builtin import BuiltinEmbedder
from memory.embedding.noise import HIGHEST, PROBES, noise_of


def test_the_noise_of_the_built_in_model() -> None:
    """It finds unrelated texts hardly alike."""
    assert noise_of(BuiltinEmbedder().embed_documents(PROBES)) == pytest.approx(0.098, abs=0.005)


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 0.0),
        ([[1.0, 0.0], [-1.0, 0.0]], 0.0),
        ([[1.0, 0.0], [1.0, 1.0]], 0.5**0.5),
        ([[2.0, 0.0], [1.0, 0.0], [3.0, 0.0]], HIGHEST),
        ([[0.0, 0.0], [1.0, 0.0]], 0.0),
    ],
)
def test_noise_is_the_mean_cosine_within_bounds(vectors: list[list[float]], expected: float) -> None:
    """Never negative, and never so high that nothing is left to tell."""
    assert noise_of(vectors) == pytest.approx(expected)
