"""What an administrator decides about content: the redactor of a call."""

from __future__ import annotations

import pytest

from memory.policy import Policy, Redactor
from memory.redaction import RedactionType

SECRET = "my password is hunter2"
HIDDEN = "my password is [password]"


@pytest.mark.parametrize("padding", ["", " and so on" * 1_000], ids=["short", "long"])
def test_a_text_that_comes_again_is_redacted_and_counted_again(padding: str) -> None:
    """Each time a text comes, its secrets are replaced and counted."""
    redactor = Redactor(Policy())
    for times in (1, 2, 3):
        assert redactor.text(SECRET + padding) == HIDDEN + padding
        assert redactor.text("nothing to hide") == "nothing to hide"
        assert redactor.counts == {"password": times}


def test_each_redactor_keeps_to_its_policy() -> None:
    """What one redactor has found is not what another one looks for."""
    assert Redactor(Policy()).text(SECRET) == HIDDEN
    assert Redactor(Policy(redact=frozenset({RedactionType.US_SSN}))).text(SECRET) == SECRET
    assert Redactor(Policy(redact=frozenset())).text(SECRET) == SECRET


def test_texts_and_metadata_are_counted_together() -> None:
    """Counts are of all that a redactor was given."""
    redactor = Redactor(Policy())
    redactor.text(SECRET)
    assert redactor.metadata({"note": SECRET, "size": 3}) == {"note": HIDDEN, "size": 3}
    assert redactor.counts == {"password": 2}
