"""Quotas as a setting, and rows that are cut to keep to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from development.chroma_server import ChromaServer
from memory.chroma import Chroma
from memory.chroma_rows import Row
from memory.clock import Deadline
from memory.errors import SettingInvalid
from memory.quotas import CHROMA_CLOUD, NO_QUOTAS, PIECES, TEXT_PIECES, Quotas, cut, read_quotas, whole
from memory.settings import ChromaSettings

OWN, CLOUD = "http://chroma.example.com:8000", "https://api.trychroma.com"
SMALL = Quotas(document_bytes=1_000, value_bytes=1_000)
LONG = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4_000)


@pytest.mark.parametrize(
    ("words", "url", "expected"),
    [
        ([], OWN, NO_QUOTAS),
        ([], CLOUD, CHROMA_CLOUD),
        ([], "https://trychroma.com.example.com", NO_QUOTAS),
        (["none"], CLOUD, NO_QUOTAS),
        (["Chroma_Cloud"], OWN, CHROMA_CLOUD),
        (
            ["records_per_read=1000", "calls_at_once = 4"],
            OWN,
            Quotas(records_per_read=1_000, calls_at_once=4),
        ),
        (
            ["records_per_write=1000"],
            CLOUD,
            Quotas(
                records_per_write=1_000,
                records_per_read=300,
                calls_at_once=8,
                document_bytes=16_384,
                value_bytes=4_096,
            ),
        ),
    ],
)
def test_quotas_are_told_in_words(words: list[str], url: str, expected: Quotas) -> None:
    """Chroma Cloud is known by its address; what was raised there is told by number."""
    assert read_quotas(words, url) == expected


@pytest.mark.parametrize(
    "word",
    [
        *("some", "records=5", "records_per_write", "records_per_write=many", "records_per_write=9", "=5"),
        *("records_per_read=5001", "calls_at_once=0", "calls_at_once=65", "value_bytes=999", "none=1"),
    ],
)
def test_what_is_no_quota_is_refused(word: str) -> None:
    """By the name of the field."""
    with pytest.raises(SettingInvalid) as caught:
        read_quotas([word], OWN)
    assert caught.value.details["name"] == "chroma_quotas"


def test_a_quota_only_lowers_what_is_usual() -> None:
    """A larger one than we would use changes nothing."""
    assert (NO_QUOTAS.write_size(500), NO_QUOTAS.read_size(1_000), NO_QUOTAS.calls(12)) == (500, 1_000, 12)
    raised = Quotas(records_per_write=5_000, records_per_read=5_000, calls_at_once=64)
    assert (raised.write_size(500), raised.read_size(1_000), raised.calls(12)) == (500, 1_000, 12)
    assert (CHROMA_CLOUD.write_size(500), CHROMA_CLOUD.read_size(1_000), CHROMA_CLOUD.calls(12)) == (
        300,
        300,
        8,
    )


@given(fixed=LONG, text=st.text(max_size=200))
def test_a_long_column_is_cut_and_put_together(fixed: str, text: str) -> None:
    """No piece is too long, none is lost, and characters stay whole."""
    if len(fixed.encode()) > 7_000:
        fixed = fixed[:1_700]
    kept, columns = cut(text, {"fixed": fixed, "scope": "s"}, SMALL)
    assert all(value is None or len(value.encode()) <= 1_000 for value in columns.values())
    assert len(columns) == 2 + PIECES["fixed"]
    stored = {name: value for name, value in columns.items() if value is not None}
    assert whole(kept, stored) == (text, {"fixed": fixed, "scope": "s"})


@given(text=LONG)
def test_a_long_text_is_cut_and_put_together(text: str) -> None:
    """It goes on in columns of its own."""
    text = text[:3_500]
    kept, columns = cut(text, {"customer": "c"}, SMALL)
    assert len(columns) == 1 + TEXT_PIECES
    assert all(value is None or len(value.encode()) <= 1_000 for value in (kept, *columns.values()))
    stored = {name: value for name, value in columns.items() if value is not None}
    assert whole(kept, stored) == (text, {"customer": "c"})


def test_what_no_row_can_hold_stays_whole() -> None:
    """The service refuses it, rather than that half of it were kept."""
    assert cut("", {"fixed": "a" * 9_000}, SMALL)[1]["fixed"] == "a" * 9_000


def test_without_quotas_nothing_is_cut() -> None:
    """A server of one's own takes it as it is."""
    columns = {"fixed": "a" * 50_000}
    assert cut("b" * 50_000, columns, NO_QUOTAS) == ("b" * 50_000, columns)


@pytest.mark.parametrize("then", [SMALL, NO_QUOTAS], ids=["with quotas", "without"])
def test_a_shorter_version_takes_the_place_of_a_longer_one(
    chroma: ChromaServer, namespace: str, then: Quotas
) -> None:
    """Nothing of the longer one comes back, also where it is written without quotas."""
    collection = f"cm-{namespace}-m0000"

    def write(quotas: Quotas, size: int) -> list[Row]:
        store = Chroma(ChromaSettings(url=chroma.url, quotas=quotas), Deadline.after(20.0))
        fixed, text = '{"a":"' + "x" * size + '"}', "y" * size
        rows = [Row("1", "", {"fixed": fixed}, [1.0, 0.0]), Row("2", text, {"customer": "c"}, [1.0, 0.0])]
        store.put(collection, rows)
        found = store.get(collection, ids=["1", "2"])
        assert [(row.text, row.columns.get("fixed")) for row in found] == [("", fixed), (text, None)]
        return found

    write(SMALL, 5_000)
    names = {name for row in write(then, 10) for name in row.columns}
    assert names == {"fixed", "customer"}
