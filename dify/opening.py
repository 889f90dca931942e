"""Opening the engine for a call, and checking a server before its settings are saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dify.models import SettingsEmbedders, language_model
from dify.settings import read_settings
from memory.audit import Audit
from memory.chroma import Chroma
from memory.clock import Deadline
from memory.engine import Engine
from memory.limits import UNLIMITED, Limits
from memory.namespace import Namespace

if TYPE_CHECKING:
    from dify_plugin.core.runtime import Session

CHECK_SECONDS = 5.0
"""Time a check of the settings may take."""
AUDIT_SECONDS = 10.0
"""Time that noting a call in the audit may add to it."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What the model selectors of a node or of the endpoint hold; None for nothing."""

    embedding_model: dict[str, Any] | None = None
    language_model: dict[str, Any] | None = None


def open_engine(
    form: Mapping[str, Any],
    selected: Selected,
    session: Session | None,
    limits: Limits = UNLIMITED,
) -> Engine:
    """An engine for one call; nothing is read or connected yet.

    Args:
        form: the credentials or the endpoint's settings.
        selected: which models of the workspace were chosen.
        session: the way back into Dify.
        limits: which customers and tickets the call may touch.

    Raises:
        SettingInvalid, ChromaAddressInvalid: a field of the form cannot be used.
    """
    settings = read_settings(form)
    return Engine(
        settings.chroma,
        SettingsEmbedders(settings, selected.embedding_model, session),
        language_model=language_model(settings, selected.language_model, session),
        policy=settings.policy,
        limits=limits,
    )


def open_audit(form: Mapping[str, Any], *, may_wait: bool = True) -> Audit:
    """The audit of the form's namespace; nothing is read or connected yet.

    Args:
        form: the credentials or the endpoint's settings.
        may_wait: whether it may take all of the form's time; otherwise it gives up after 10 seconds.

    Raises:
        SettingInvalid, ChromaAddressInvalid: a field of the form cannot be used.
    """
    settings = read_settings(form, timeout_seconds=None if may_wait else AUDIT_SECONDS)
    deadline = Deadline.after(settings.chroma.timeout_seconds)
    return Audit(Namespace(Chroma(settings.chroma, deadline), settings.chroma), settings.audit)


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
