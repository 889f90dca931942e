"""Opening the engine for a call, and checking a server before its settings are saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dify.models import SettingsEmbedders
from dify.settings import read_settings
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.engine import Engine

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session

CHECK_SECONDS = 5.0
"""Time a check of the settings may take."""


def open_engine(
    form: Mapping[str, Any], *, selected: dict[str, Any] | None, session: Session | None
) -> Engine:
    """An engine for one call; nothing is read or connected yet.

    Args:
        form: the credentials or the endpoint's settings.
        selected: what the node's embedding model selector holds; None for nothing.
        session: the way back into Dify.

    Raises:
        SettingInvalid, ChromaAddressInvalid: a field of the form cannot be used.

    """
    settings = read_settings(form)
    return Engine(settings.chroma, SettingsEmbedders(settings, selected, session))


def check_settings(form: Mapping[str, Any]) -> str:
    """Make sure that the form leads to a usable Chroma server. Nothing is written.

    Args:
        form: the fields as Dify sends them.

    Returns:
        The server's version.

    Raises:
        SetupError, ServiceError: what is wrong, in words for whoever fills in the form.

    """
    settings = read_settings(form, timeout_seconds=CHECK_SECONDS)
    deadline = Deadline.after(settings.chroma.timeout_seconds)
    return Chroma(settings.chroma, deadline).check()
