"""Reading case files, and what running one of them means."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWN_CASES = Path(__file__).parent / "data"


class NotDataError(Exception):
    """The case, or a part of it, says something that the runner does not know."""


@dataclass(frozen=True)
class Check:
    """One thing to run: a whole case, or a row of one."""

    name: str
    kind: str
    run: Callable[[], None]


Runner = Callable[[str, dict[str, Any]], list[Check]]


def load_checks(directory: Path, runners: dict[str, Runner]) -> list[Check]:
    """All checks of the case files in a directory, in the order of their names."""
    checks: list[Check] = []
    for path in sorted(directory.glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(case, dict) or "kind" not in case:
            continue
        name = case.get("id", path.stem)
        runner = runners.get(case["kind"])
        checks += runner(name, case) if runner is not None else [Check(name, case["kind"], _unknown(case["kind"]))]
    return checks


def _unknown(kind: str) -> Callable[[], None]:
    def run() -> None:
        raise NotDataError(f"kind {kind} is not run from data here")

    return run
