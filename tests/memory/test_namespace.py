"""A namespace remembers what it was started with, and shares nothing with another."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from development.chroma_server import ChromaServer
from memory.about import About
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.embedding import BUILTIN, EmbedderIdentity, Source
from memory.errors import ChromaDatabaseMissing, ChromaTenantMissing, EmbedderMismatch
from memory.namespace import Namespace
from memory.settings import ChromaSettings

OTHER = EmbedderIdentity(Source.DIFY, "langgenius/openai", "text-embedding-3-small")


def _namespace(url: str, name: str, *, shards: int = 64, database: str = "default_database") -> Namespace:
    settings = ChromaSettings(url=url, namespace=name, shards=shards, database=database)
    return Namespace(Chroma(settings, Deadline.after(20.0)), settings)


def test_a_namespace_nobody_wrote_to_remembers_nothing(chroma: ChromaServer, namespace: str) -> None:
    """Looking at it does not start it."""
    assert _namespace(chroma.url, namespace).about() is None
    assert _namespace(chroma.url, namespace).about() is None


def test_a_namespace_remembers_what_it_was_started_with(chroma: ChromaServer, namespace: str) -> None:
    """Embedder, dimension and number of shards stay those of the first write."""
    started = _namespace(chroma.url, namespace, shards=8).start(OTHER, 1_536, noise=0.1)
    assert started == About(OTHER, 1_536, 8, 0.1)
    assert _namespace(chroma.url, namespace).about() == started
    assert _namespace(chroma.url, namespace, shards=16).start(BUILTIN, 512, noise=0.2) == started


@pytest.mark.parametrize("shards", [1, 1_024])
def test_the_number_of_shards_is_fixed_by_the_start(
    chroma: ChromaServer, namespace: str, shards: int
) -> None:
    """Another setting later does not move a customer to another collection."""
    _namespace(chroma.url, namespace, shards=shards).start(BUILTIN, 512, noise=0.1)
    about = _namespace(chroma.url, namespace, shards=7).about()
    assert about is not None
    assert about.shards == shards


def test_of_two_that_start_at_once_one_wins_and_both_agree(chroma: ChromaServer, namespace: str) -> None:
    """Ten times over, two threads start one namespace with different models and get the same answer."""
    for attempt in range(10):
        name = f"{namespace}-{attempt}"
        ready = threading.Barrier(2)

        def start(embedder: EmbedderIdentity, *, name: str = name, ready: threading.Barrier = ready) -> About:
            mine = _namespace(chroma.url, name)
            assert mine.about() is None
            ready.wait(10)
            return mine.start(embedder, 512, noise=0.1)

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(start, [BUILTIN, OTHER])
        assert one == other == _namespace(chroma.url, name).about()
        assert one.embedder in {BUILTIN, OTHER}


def test_a_namespace_is_told_apart_by_server_database_and_name(chroma: ChromaServer, namespace: str) -> None:
    """A namespace of a similar name is another one."""
    _namespace(chroma.url, namespace).start(BUILTIN, 512, noise=0.1)
    for name in (f"{namespace}-m0000", f"{namespace}-about", f"{namespace}x", namespace[:-1]):
        assert _namespace(chroma.url, name).about() is None


def test_a_missing_database_is_no_empty_namespace(chroma: ChromaServer, namespace: str) -> None:
    """Where there is no such place, "nothing is known" would be a lie."""
    with pytest.raises(ChromaDatabaseMissing):
        _namespace(chroma.url, namespace, database="nowhere").about()
    settings = ChromaSettings(url=chroma.url, namespace=namespace, tenant="nobody")
    with pytest.raises(ChromaTenantMissing):
        Namespace(Chroma(settings, Deadline.after(20.0)), settings).about()


_names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)
_endings = st.sampled_from(["", "-m0000", "-links", "-about", "-", "-m", ".m0000", "_links", "-0"])


def _collections(name: str) -> set[str]:
    space = _namespace("http://chroma.example.com", name)
    return {space.links, space._collection("about"), *(space.memories(shard) for shard in range(70))}


@given(_names, _names, _endings)
def test_two_namespaces_have_no_collection_in_common(one: str, other: str, ending: str) -> None:
    """Not even where one name is made of the other and what we append."""
    assert len(_collections(one)) == 72
    for second in {other, (one + ending)[:63]} - {one}:
        assert not _collections(one) & _collections(second)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "0", "a" * 63, "a.b.c", "a-", "a.", "a_"])
def test_every_name_the_settings_allow_makes_collections(chroma: ChromaServer, name: str) -> None:
    """The server takes the names that follow from a namespace's, at both ends of its length."""
    space = _namespace(chroma.url, name)
    space.start(BUILTIN, 512, noise=0.1)
    space.chroma.put(space.memories(1_023), [Row("a", "", {"scope": "s"}, [1.0, 0.0])])
    assert space.chroma.count(space.memories(1_023)) >= 1


# --- deleted while in use -----------------------------------------------------------------------


def _write(space: Namespace, shard: int) -> None:
    space.chroma.put(space.memories(shard), [Row("a", "", {"scope": "s"}, [1.0, 0.0])])


def _delete(space: Namespace, *shards: int) -> None:
    """Delete a namespace as another process would, whose own handles do not matter here."""
    settings = ChromaSettings(url=space._settings.url, namespace=space.name, token="another-process")
    chroma = Chroma(settings, Deadline.after(20.0))
    for collection in (space._collection("about"), *(space.memories(shard) for shard in shards)):
        chroma.drop(collection)


def test_a_namespace_deleted_while_in_use_is_started_again(chroma: ChromaServer, namespace: str) -> None:
    """The next write does not leave rows in a namespace that remembers no embedder."""
    space = _namespace(chroma.url, namespace)
    started = space.start(OTHER, 2, noise=0.1)
    assert space.about() == started
    _write(space, 0)
    _delete(space, 0)
    _write(_namespace(chroma.url, namespace), 0)
    stored = space.chroma.metadata(space._collection("about"))
    assert stored is not None
    assert (stored["model"], stored["dimension"]) == (OTHER.model, 2)


@pytest.mark.parametrize("shard", [0, 1], ids=["a shard used before", "a shard not used before"])
def test_a_namespace_started_anew_with_another_model_takes_no_vector_of_the_old(
    chroma: ChromaServer, namespace: str, shard: int
) -> None:
    """A process that knew the deleted namespace is refused by name instead of mixing vectors."""
    space = _namespace(chroma.url, namespace)
    space.start(OTHER, 2, noise=0.1)
    assert space.about() is not None
    _write(space, 0)
    _delete(space, 0)
    settings = ChromaSettings(url=chroma.url, namespace=namespace, token="another-process")
    Chroma(settings, Deadline.after(20.0)).create(
        space._collection("about"),
        {
            "layout": 1,
            "source": "builtin",
            "provider": "",
            "model": BUILTIN.model,
            "dimension": 2,
            "shards": 64,
        },
    )
    with pytest.raises(EmbedderMismatch):
        _write(_namespace(chroma.url, namespace), shard)
