"""Where the project's files and environments lie."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PLUGIN_PYTHON = PROJECT / ".venv/bin/python"
"""Runs the plugin from the project's own folder."""
CHROMA = PROJECT / ".chroma-server/bin/chroma"
PEERS = PROJECT / ".peers"
"""Environments of what benchmarks compare with."""
UV = PROJECT / ".tools/bin/uv"
