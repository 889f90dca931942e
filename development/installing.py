"""Installs a package as the daemon does: unpacked, with an environment of its own from its requirements."""

import subprocess
import zipfile
from pathlib import Path

from development.places import PLUGIN_PYTHON, UV


def unpack(package: Path, target: Path) -> Path:
    """Unpack a package.

    Returns:
        The plugin's folder.
    """
    folder = target / "plugin"
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    return folder


def install(folder: Path) -> Path:
    """Make an environment in the plugin's folder with nothing but what requirements.txt names.

    Returns:
        Its Python.

    Raises:
        RuntimeError: the requirements cannot be installed.
    """
    environment = folder / ".venv"
    python = environment / "bin/python"
    commands: list[list[str | Path]] = [
        [UV, "venv", "--quiet", "--python", PLUGIN_PYTHON, environment],
        [UV, "pip", "install", "--quiet", "--python", python, "-r", folder / "requirements.txt"],
        [python, "-m", "compileall", "-q", *sorted(p for p in folder.iterdir() if p.name != ".venv")],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-2_000:])
    return python


def installed_bytes(folder: Path) -> int:
    """Size of the files in the plugin's environment; links are not followed."""
    files = (p for p in (folder / ".venv").rglob("*") if p.is_file() and not p.is_symlink())
    return sum(path.stat().st_size for path in files)
