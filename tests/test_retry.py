"""Delays and Retry-After: arithmetic only."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_agent import ModelError, RateLimitError, RetryPolicy
from trio_agent._retry import parse_retry_after

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        ("1.5", 1.5),
        (" 20 ", 20),
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10),
        ("Sunday, 06-Nov-94 08:49:47 GMT", 10),
        ("Sun Nov  6 08:49:47 1994", 10),
        ("Sun, 06 Nov 1994 08:49:47", 10),
        ("Sun, 06 Nov 1994 08:49:47 -0000", 10),
        ("Sun, 06 Nov 1994 09:49:47 +0100", 10),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
    ],
)
def test_every_form_of_retry_after_is_understood(value: str, seconds: float) -> None:
    assert parse_retry_after({"retry-after": value}, now=NOW) == seconds


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "inf", "12abc", "Sun, 99 Nov 1994 08:49:47 GMT"])
def test_a_retry_after_that_makes_no_sense_is_none(value: str) -> None:
    assert parse_retry_after({"retry-after": value}, now=NOW) is None


def test_milliseconds_count_before_seconds() -> None:
    assert parse_retry_after({"retry-after-ms": "250", "retry-after": "7"}, now=NOW) == 0.25
    assert parse_retry_after({"retry-after-ms": "soon", "retry-after": "7"}, now=NOW) == 7
    assert parse_retry_after({}, now=NOW) is None


def test_a_date_is_compared_with_the_clock_of_the_server() -> None:
    headers = {"retry-after": "Sun, 06 Nov 1994 08:49:47 GMT", "date": "Sun, 06 Nov 1994 08:49:42 GMT"}

    assert parse_retry_after(headers, now=0.0) == 5


@given(st.text())
def test_no_header_raises(value: str) -> None:
    seconds = parse_retry_after({"retry-after": value, "retry-after-ms": value, "date": value}, now=NOW)

    assert seconds is None or seconds >= 0


def test_delays_double_up_to_the_longest() -> None:
    policy = RetryPolicy(base_delay=0.5, max_delay=8)

    assert [policy.delay(n, chance=0) for n in (1, 2, 3, 4, 5, 6, 2000)] == [0.5, 1, 2, 4, 8, 8, 8]


def test_chance_cuts_off_at_most_the_jitter() -> None:
    policy = RetryPolicy(base_delay=4, jitter=0.25)

    assert policy.delay(1, chance=1) == 3
    assert policy.delay(1, chance=0.5) == 3.5


@pytest.mark.parametrize(
    "settings", [{"attempts": 0}, {"base_delay": -1}, {"max_delay": float("nan")}, {"jitter": 2}, {"jitter": -0.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        RetryPolicy(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("duplicate", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
def test_errors_of_models_can_be_copied_and_pickled(duplicate: type) -> None:
    error = RateLimitError("429: slow down", status=429, provider="p", retryable=True, retry_after=2, request_id="r")

    other = duplicate(error)

    assert type(other) is RateLimitError
    assert (str(other), vars(other)) == (str(error), vars(error))
    assert isinstance(other, ModelError)
