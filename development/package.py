"""Builds the package: a plain zip of the tree minus .difyignore, the same bytes for the same tree."""

import fnmatch
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from development.places import PROJECT

MOMENT = (2026, 1, 1, 0, 0, 0)
"""Time of every file in the zip, so that it does not depend on when it was checked out."""
MAX_BYTES = 50 * 1024 * 1024
MAX_FILES = 5_000
"""What the marketplace accepts."""


def ignore_patterns(folder: Path) -> list[str]:
    """The lines of .difyignore that are patterns."""
    lines = (folder / ".difyignore").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def packaged_files(folder: Path) -> list[Path]:
    """The files that go into the package, relative to the folder, in the order of their names."""
    patterns = ignore_patterns(folder)
    return sorted(_walk(folder, folder, patterns), key=lambda path: path.as_posix())


def _walk(folder: Path, root: Path, patterns: list[str]) -> Iterator[Path]:
    for entry in folder.iterdir():
        relative = entry.relative_to(root)
        if _is_ignored(relative, is_folder=entry.is_dir(), patterns=patterns):
            continue
        if entry.is_dir():
            yield from _walk(entry, root, patterns)
        else:
            yield relative


def _is_ignored(path: Path, *, is_folder: bool, patterns: list[str]) -> bool:
    """A pattern that ends in a slash means folders; one is matched against the name and the whole path."""
    for pattern in patterns:
        if pattern.endswith("/"):
            if is_folder and pattern.rstrip("/") in {path.name, path.as_posix()}:
                return True
        elif fnmatch.fnmatch(path.name, pattern) or fnmatch.fnmatch(path.as_posix(), pattern):
            return True
    return False


def version(folder: Path) -> str:
    """The version in the manifest."""
    manifest = yaml.safe_load((folder / "manifest.yaml").read_text(encoding="utf-8"))
    return str(manifest["version"])


def build(folder: Path = PROJECT, target: Path | None = None) -> Path:
    """Write `customer_memory-<version>.difypkg`.

    Args:
        folder: the plugin's tree.
        target: folder to write to; None for the plugin's own.

    Returns:
        Where the package is.

    Raises:
        ValueError: it is larger than the marketplace accepts.
    """
    package = (target or folder) / f"customer_memory-{version(folder)}.difypkg"
    files = packaged_files(folder)
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.as_posix(), MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, (folder / path).read_bytes())
    if package.stat().st_size > MAX_BYTES or len(files) > MAX_FILES:
        raise ValueError(f"the package is too large: {package.stat().st_size} bytes, {len(files)} files")
    return package


if __name__ == "__main__":
    built = build()
    print(f"{built.name}: {built.stat().st_size:,} bytes, {len(packaged_files(PROJECT))} files")
    if "--list" in sys.argv:
        print("\n".join(path.as_posix() for path in packaged_files(PROJECT)))
