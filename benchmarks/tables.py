"""Figures as lines of text."""

from collections.abc import Mapping

type Figures = dict[str, float]
"""What was measured of one thing, by name."""


def table(results: Mapping[str, Figures], *, width: int) -> str:
    """A line for each thing that was measured, its figures in the order they have.

    Args:
        results: figures by the name of what was measured.
        width: of the names.
    """
    lines = []
    for name, values in results.items():
        shown = ", ".join(f"{value_name.replace('_', ' ')} {_shown(v)}" for value_name, v in values.items())
        lines.append(f"{name:{width}} {shown}")
    return "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:.2f}" if value % 1 and value < 100 else f"{value:,.0f}"
