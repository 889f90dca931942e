"""What the command lines share that work on the Chroma server itself: its address, namespace and model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from dify.models import SettingsEmbedders
from dify.settings import EmbeddingSource, Settings, read_settings
from memory.errors import MemoryFault
from scripts.command import complain
from scripts.requesting import DEFAULT_RETRIES, DEFAULT_RETRY_SECONDS, Patience, Stopped, Transient, Tries

TOKEN_VARIABLE = "CUSTOMER_MEMORY_CHROMA_TOKEN"  # noqa: S105 - a name
EMBEDDING_KEY_VARIABLE = "CUSTOMER_MEMORY_EMBEDDING_API_KEY"
_FIELDS = (
    ("chroma_url", "the server's address"),
    ("chroma_auth_header", f"header for the token in {TOKEN_VARIABLE}"),
    ("chroma_tenant", "tenant"),
    ("chroma_database", "database"),
    ("namespace", "the namespace"),
    ("embedding_base_url", f"of an openai_compatible service; its key comes from {EMBEDDING_KEY_VARIABLE}"),
    ("embedding_model", "of that service"),
    ("timeout_seconds", "for one step"),
)


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where the memories lie, named as the fields of the credentials."""
    for name, meaning in _FIELDS:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, dest=name, required=name == "chroma_url", help=meaning)
    sources = [str(source) for source in EmbeddingSource]
    parser.add_argument("--embedding-source", dest="embedding_source", choices=sources, help="the model")
    parser.add_argument("--retries", metavar="N", type=int, default=DEFAULT_RETRIES, help="tries again")
    parser.add_argument("--retry-seconds", metavar="S", type=float, default=DEFAULT_RETRY_SECONDS)


def settings_of(options: argparse.Namespace) -> Settings:
    """Those of the command line.

    Raises:
        Stopped: one cannot be used.
    """
    form = {name: getattr(options, name) for name, _ in _FIELDS}
    form |= {
        "embedding_source": options.embedding_source,
        "chroma_token": os.environ.get(TOKEN_VARIABLE, ""),
        "embedding_api_key": os.environ.get(EMBEDDING_KEY_VARIABLE, ""),
    }
    try:
        return read_settings({name: value for name, value in form.items() if value})
    except MemoryFault as fault:
        raise Stopped(str(fault)) from None


def embedders_of(settings: Settings) -> SettingsEmbedders:
    """The models these settings lead to: the built-in one, and that of a service."""
    return SettingsEmbedders(settings, None, None)


def patiently(options: argparse.Namespace, work: Callable[[Tries], None]) -> None:
    """Do something, and again while it fails in a way that may pass; it goes on where it was.

    Raises:
        Stopped: somebody has to act, or it was tried often enough.
    """
    tries = Tries(Patience(retries=options.retries, seconds=options.retry_seconds), complain)
    while True:
        try:
            work(tries)
        except MemoryFault as fault:
            if not fault.retryable:
                raise Stopped(str(fault)) from None
            tries.wait(Transient(f"{fault.message} ({fault.code})"))
        else:
            return
