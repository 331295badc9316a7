"""Options of the conformance suite, and its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scenario import OWN_SCENARIOS, Scenario, load


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption(
        "--scenarios", metavar="DIR", help="play the scenario files of another directory instead of our own"
    )
    group.addoption(
        "--seeds", type=int, default=1, metavar="N", help="play each scenario in N orders of Trio's scheduler"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # The options are unknown when a run does not start in this directory.
    if "seed" in metafunc.fixturenames:
        seeds: int = metafunc.config.getoption("--seeds", default=1) or 1
        metafunc.parametrize("seed", range(seeds), ids="seed{}".format)
    if "scenario" in metafunc.fixturenames:
        directory = Path(metafunc.config.getoption("--scenarios", default=None) or OWN_SCENARIOS)
        scenarios = load(directory)
        if metafunc.definition.get_closest_marker("watched"):
            scenarios = [scenario for scenario in scenarios if scenario.can_be_watched]
        metafunc.parametrize("scenario", scenarios, ids=_name)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "watched: only scenarios in which a watched run may stand in for a listener")


def _name(scenario: Scenario) -> str:
    return scenario.name
