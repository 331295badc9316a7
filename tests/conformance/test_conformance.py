"""Every scenario, through the public API, in each way in which it can be watched."""

from __future__ import annotations

import pytest

from .compare import difference
from .runner import observe
from .scenario import OWN_SCENARIOS, Scenario, load


def test_scenario_gives_the_expected_observation(scenario: Scenario, seed: int) -> None:
    judge(scenario, difference(scenario, observe(scenario.input, seed=seed)))


@pytest.mark.watched
def test_watched_run_gives_the_same_observation_as_a_listener(scenario: Scenario, seed: int) -> None:
    judge(scenario, difference(scenario, observe(scenario.input, seed=seed, watched=True)))


def judge(scenario: Scenario, found: str | None) -> None:
    """A difference is a failure, except in a quirk of the reference about which nothing else is said."""
    if found is None:
        return
    if scenario.binding:
        pytest.fail(found, pytrace=False)
    pytest.xfail(f"differs from a quirk of the reference ({scenario.note})\n{found}")


def test_each_overlay_corrects_a_scenario() -> None:
    names = {scenario.name for scenario in load(OWN_SCENARIOS)}
    overlays = {path.stem for path in OWN_SCENARIOS.parent.joinpath("overlays").glob("*.json")}

    assert overlays <= names
