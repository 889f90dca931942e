"""The documents beside the README: links lead somewhere, benchmarks are told of, quotas are the code's."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from development.places import PROJECT
from dify.routes import ROUTES, Route
from memory.quotas import CHROMA_CLOUD
from memory.settings import DEFAULT_SHARDS, SHARDS_RANGE

DOCUMENTS = ["README.md", "CHANGELOG.md", "PRIVACY.md", "benchmarks/README.md", "docs/scaling.md"]


def _text(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def test_every_document_is_looked_at() -> None:
    """A new page in docs/ is checked as the others are."""
    pages = {path.relative_to(PROJECT).as_posix() for path in (PROJECT / "docs").rglob("*.md")}
    assert pages <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_within_the_project_lead_somewhere(name: str) -> None:
    """Each names a file that is there."""
    folder = (PROJECT / name).parent
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", _text(name))]
    local = [target for target in targets if target and "://" not in target]
    assert [target for target in local if not (folder / target).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_in_english(name: str) -> None:
    """No Chinese, Japanese or Korean outside code fences and examples in code."""
    outside = re.sub(r"```.*?```|`[^`\n]*`|\"[^\"\n]*\"", "", _text(name), flags=re.DOTALL)
    assert re.findall(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]", outside) == []


def test_every_benchmark_is_told_of() -> None:
    """Each module that can be run has its command in the table, by make or by name."""
    told = _text("benchmarks/README.md")
    recipes = dict(
        re.findall(r"^([a-z-]+): setup\n\t@\$\(PYTHON\) -m (benchmarks\.\w+)", _text("Makefile"), re.M)
    )
    commands = {module: f"make {target}" for target, module in recipes.items()}
    runnable = [
        f"benchmarks.{path.stem}"
        for path in sorted((PROJECT / "benchmarks").glob("*.py"))
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8") and path.stem != "peer_mem0_process"
    ]
    assert len(runnable) >= 8
    assert [m for m in runnable if f"`{commands.get(m, f'python -m {m}')}" not in told] == []


def test_the_page_on_scaling_has_the_limits_of_the_code() -> None:
    """Numbers of the settings stand there as they are."""
    page = _text("docs/scaling.md")
    low, high = SHARDS_RANGE
    assert f"{low:,} to {high:,}, default {DEFAULT_SHARDS}" in page
    for name, value in asdict(CHROMA_CLOUD).items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"| `{name}`" in line)
        assert f"{value:,}" in row


def test_no_page_goes_into_the_package() -> None:
    """A Dify server does not need them."""
    assert "docs/" in Path(PROJECT / ".difyignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [(method, path, route) for path, methods in ROUTES.items() for method, route in methods.items()],
)
def test_every_path_stands_under_the_right_it_wants(method: str, path: str, route: Route) -> None:
    """In the table of paths, and in the table of rights, where a key without limits wants one."""
    lines = _text("README.md").splitlines()
    assert any(line.startswith("|") and f"`{method} {path}" in line.partition(" | ")[0] for line in lines)
    if route.right is None:
        return
    row = next(line for line in lines if line.startswith(f"| `{route.right}` |"))
    clauses = [clause for clause in row.split(";") if f"{path}`" in clause]
    assert any(f"`{method} {path}`" in clause or f"`{method}` of " in clause for clause in clauses)
