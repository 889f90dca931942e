"""What the command lines share: the key, arguments, exit status, and text for a terminal."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from scripts.requesting import DEFAULT_RETRIES, DEFAULT_RETRY_SECONDS

KEY_VARIABLE = "CUSTOMER_MEMORY_API_KEY"
FINE, INCOMPLETE, STOPPED, INTERRUPTED = 0, 1, 2, 130
_PATHS = ("/tickets/import", "/backup", "/export")


def endpoint_key(parser: argparse.ArgumentParser) -> str:
    """The endpoint's key, from the environment; without one the command ends."""
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        parser.error(f"set {KEY_VARIABLE} to the endpoint's API key")
    return key


def add_endpoint(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which endpoint, and how patient to be with it."""
    add = parser.add_argument
    add("--url", required=True, type=address, help="the endpoint's address, as Dify shows it")
    add("--retries", metavar="N", type=int, default=DEFAULT_RETRIES, help="tries again of one request")
    add(
        "--retry-seconds",
        metavar="S",
        type=float,
        default=DEFAULT_RETRY_SECONDS,
        help="before the first of them",
    )


def address(text: str) -> str:
    """The address of an endpoint group."""
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
        raise argparse.ArgumentTypeError("an address like https://dify.example.com/e/abc is needed")
    text = text.rstrip("/")
    for path in _PATHS:
        text = text.removesuffix(path)
    return text


def existing_file(text: str) -> Path:
    """A file that is there."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


def possible_file(text: str) -> Path:
    """A file that can be written."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"no file can be written as {text}")
    return path


def shown(text: str) -> str:
    """A name or an id as a terminal can show it."""
    return "".join(c if c.isprintable() else "?" for c in text)


def complain(sentence: str) -> None:
    """Say something beside the output."""
    sys.stderr.write(sentence + "\n")
