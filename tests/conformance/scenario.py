"""Scenario files and what is expected of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = ["LISTS", "OWN_SCENARIOS", "JsonObject", "Scenario", "load"]

JsonObject: TypeAlias = dict[str, Any]

OWN_SCENARIOS: Final = Path(__file__).parent / "scenarios"

LISTS: Final = ("steps", "events", "log", "requests", "final")
"""The parts of an observation, in the order in which a difference is most telling."""


@dataclass(frozen=True)
class Scenario:
    """One scenario file, with the overlay that corrects its golden, if there is one.

    Attributes:
        name: of the file; for test ids and messages only.
        input: what to run.
        expect: what must be observed: the golden, with the lists of the overlay in place of its own.
        by_lanes: the log is compared lane by lane within each instant.
        tolerate: names of differences that do not count.
        binding: a difference is a failure, not a report.
        note: what is wrong with the golden of a quirk.
    """

    name: str
    input: JsonObject
    expect: JsonObject
    by_lanes: bool
    tolerate: frozenset[str]
    binding: bool
    note: str

    @property
    def can_be_watched(self) -> bool:
        """Whether a watched run may stand in for the recording listener: an agent without further listeners."""
        return self.input.get("mode", "agent") == "agent" and not self.input.get("listeners")


def load(directory: Path) -> list[Scenario]:
    """All scenarios of a directory, by name.

    A quirk of our own directory counts like any other: where its golden is not what we want, an overlay says so. In
    another directory a quirk without an overlay is only reported.
    """
    scenarios = [_load(path) for path in sorted(directory.glob("*.json"))]
    if not scenarios:
        raise FileNotFoundError(f"no scenario files in {directory}")
    return scenarios


def _load(path: Path) -> Scenario:
    golden = json.loads(path.read_text("utf-8"))
    overlay = _overlay(path)
    return Scenario(
        name=path.stem,
        input=golden["input"],
        expect={**golden["expect"], **overlay.get("expect-ours", {})},
        by_lanes=golden.get("order") == "lanes",
        tolerate=frozenset(golden.get("tolerate", ())) | frozenset(overlay.get("tolerate", ())),
        binding=golden.get("status") != "quirk" or bool(overlay) or path.parent.samefile(OWN_SCENARIOS),
        note=golden.get("note", ""),
    )


def _overlay(path: Path) -> JsonObject:
    beside = path.parent.parent / "overlays" / path.name
    overlay: JsonObject = json.loads(beside.read_text("utf-8")) if beside.is_file() else {}
    return overlay
