"""What a process used so far, from /proc."""

import os
from pathlib import Path


def peak_megabytes(pid: int) -> float:
    """The most memory it ever had in use."""
    return _megabytes(pid, "VmHWM:")


def resident_megabytes(pid: int) -> float:
    """The memory it has in use now."""
    return _megabytes(pid, "VmRSS:")


def _megabytes(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Time it ran on a core, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
