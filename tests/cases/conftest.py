"""One test for each check in the case files that are to be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .argument_rows import argument_checks
from .case_files import OWN_CASES, Runner, load_checks
from .whole_cases import body_checks, history_checks

RUNNERS: dict[str, Runner] = {"a": body_checks, "b": history_checks, "c": argument_checks}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "check" in metafunc.fixturenames:
        directory = Path(metafunc.config.getoption("--cases", default=None) or OWN_CASES)
        checks = load_checks(directory, RUNNERS)
        metafunc.parametrize("check", checks, ids=[check.name for check in checks])
