"""Cases of the kinds a and b, as checks that can be run from any directory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import history_cases, wire_cases
from .case_files import Check, NotDataError

Case = dict[str, Any]


def body_checks(name: str, case: Case) -> list[Check]:
    """A check for a body of an answer."""
    return [_check(name, case, wire_cases.is_supported, wire_cases.run_case)]


def history_checks(name: str, case: Case) -> list[Check]:
    """A check for a history and the request made of it."""
    return [_check(name, case, history_cases.is_supported, history_cases.run_case)]


def _check(name: str, case: Case, is_supported: Callable[[Case], bool], run_case: Callable[[Case], list[str]]) -> Check:
    return Check(name, case["kind"], functools.partial(_run, case, is_supported, run_case))


def _run(case: Case, is_supported: Callable[[Case], bool], run_case: Callable[[Case], list[str]]) -> None:
    if not is_supported(case):
        raise NotDataError(f"a script of kind {case['kind']} in words, or for an API that is not known")
    differences = run_case(case)
    assert not differences, "\n".join(differences)
