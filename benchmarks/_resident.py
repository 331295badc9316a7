"""How much memory this process has, as the operating system counts it, in kilobytes."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

__all__ = ["idle", "peak"]

_STATUS = Path("/proc/self/status")


def idle() -> int:
    """What the process has now, after a collection of garbage; where that is not told, its peak."""
    gc.collect()
    return _kilobytes("VmRSS:") if _STATUS.exists() else peak()


def peak() -> int:
    """The most it ever had."""
    # Linux counts the peak of a new process from that of its parent in getrusage(), but not here.
    if _STATUS.exists():
        return _kilobytes("VmHWM:")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


def _kilobytes(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise RuntimeError(f"{_STATUS} has no {field}")
