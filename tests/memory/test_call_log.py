"""One line a call: what it did, how it ended, how long it took; nothing of what was said."""

import json
import logging
from collections.abc import Iterator

import pytest

from development.chroma_server import ChromaServer
from memory.call_log import LOGGER, logged, streamed
from memory.content import Note, read_content
from memory.engine import Engine
from memory.errors import ChromaBusy, ConversationMismatch
from memory.identity import Caller
from memory.recalling import Question
from memory.settings import ChromaSettings
from tests.scenarios.engines import HashChoice


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [json.loads(r.getMessage()) for r in caplog.records if r.name == LOGGER]


def test_a_call_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """With stages in the order they ended, and what was noted."""
    with caplog.at_level(logging.INFO, LOGGER), logged("recall") as log:
        log.lap("search")
        log.note(found=2, scores=[0.5, 0.25])
        log.lap("context")
    (line,) = _lines(caplog)
    assert (line["verb"], line["outcome"], line["found"], line["scores"]) == ("recall", "ok", 2, [0.5, 0.25])
    stages = line["stages"]
    assert isinstance(stages, dict)
    assert list(stages) == ["search", "context"]


@pytest.mark.parametrize(
    ("fault", "code"), [(ChromaBusy(), "chroma_busy"), (KeyError("what she said"), "internal_error")]
)
def test_a_failure_is_logged_by_its_code(
    caplog: pytest.LogCaptureFixture, fault: Exception, code: str
) -> None:
    """The exception goes on, and its text stays out."""

    @logged("forget")
    def fail() -> None:
        raise fault

    with caplog.at_level(logging.INFO, LOGGER), pytest.raises(type(fault)):
        fail()
    (line,) = _lines(caplog)
    assert (line["verb"], line["outcome"]) == ("forget", code)
    assert "what she said" not in caplog.text


def test_what_is_streamed_is_one_line_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """Whole, given up by whoever was answered, or failed on the way; nothing before the first part."""

    def parts() -> Iterator[int]:
        yield 1
        yield 2
        raise ChromaBusy

    with caplog.at_level(logging.INFO, LOGGER):
        assert list(streamed("export", iter([1, 2]))) == [1, 2]
        streamed("export", [1])  # nobody asks for a part
        given_up = streamed("back_up", parts())
        assert next(given_up) == 1
        given_up.close()
        with pytest.raises(ChromaBusy):
            list(streamed("restore", parts()))
    told = [(line["verb"], line["outcome"]) for line in _lines(caplog)]
    assert told == [("export", "ok"), ("back_up", "closed"), ("restore", "chroma_busy")]


def test_the_log_of_an_engine_holds_no_words_and_no_people(
    chroma: ChromaServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ids of memories, scores, counts and times of a recall; outcomes of the others."""
    engine = Engine(ChromaSettings(url=chroma.url, namespace=namespace), HashChoice())
    statements, _ = read_content("Prefers teal envelopes", kind=None)
    with caplog.at_level(logging.INFO, LOGGER):
        engine.remember(Caller.checked("zoe-77", "chat-88"), statements, Note())
        found = engine.recall(Caller.checked("zoe-77"), Question(query="Which envelopes?", min_score=0.0))
        with pytest.raises(ConversationMismatch):
            engine.recall(
                Caller.checked("adam", "chat-88"), Question(query="Which envelopes?", min_score=0.0)
            )
    remembered, recalled, refused = _lines(caplog)
    assert (remembered["verb"], remembered["outcome"]) == ("remember", "ok")
    assert recalled["memory_ids"] == [hit.memory.memory_id for hit in found.hits]
    assert recalled["degraded"] == ""
    assert recalled["scores"] == [round(hit.total, 4) for hit in found.hits]
    assert refused["outcome"] == "conversation_of_another_customer"
    assert not any(word in caplog.text for word in ("teal", "envelopes", "zoe", "chat-88", "adam"))
