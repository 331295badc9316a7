"""Options of the wire tests: other recordings and vectors, and the report of how many of them we meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from .shared import RECORDINGS, VECTORS

REPORT: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trio_agent wire")
    group.addoption("--recordings", type=Path, help="directory of recorded answers, <api>/<name>.sse with expectations")
    group.addoption("--vectors", type=Path, help="directory of reference vectors")


def _directory(config: pytest.Config, option: str, default: Path) -> Path:
    # The option is unknown when a run begins above this directory.
    given: Path | None = config.getoption(option, default=None)
    if given is not None and not given.is_dir():
        raise pytest.UsageError(f"{option}: {given} is no directory")
    return given or default


@pytest.fixture(scope="session")
def recordings_directory(pytestconfig: pytest.Config) -> Path:
    directory = _directory(pytestconfig, "--recordings", RECORDINGS)
    if not directory.is_dir():
        pytest.skip("no recordings beside the checkout; give them with --recordings DIR")
    return directory


@pytest.fixture(scope="session")
def vectors_directory(pytestconfig: pytest.Config) -> Path:
    directory = _directory(pytestconfig, "--vectors", VECTORS)
    if not directory.is_dir():
        pytest.skip("no reference vectors beside the checkout; give them with --vectors DIR")
    return directory


@pytest.fixture
def report(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the end of the run."""
    return pytestconfig.stash.setdefault(REPORT, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(REPORT, [])
    if lines:
        terminalreporter.section("wire")
        for line in lines:
            terminalreporter.write_line(line)
