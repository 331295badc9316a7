from __future__ import annotations

import pytest

from .case_files import Check, NotDataError


def test_case(check: Check) -> None:
    try:
        check.run()
    except NotDataError as exc:
        pytest.skip(f"{check.name}: {exc}")
