"""When a failed request is made again, and how long to wait before: arithmetic, without a clock and without I/O.

:func:`trio_agent.with_retries` above does the waiting. What the server asks for counts, within a bound; otherwise the
delay doubles from one retry to the next and is cut by chance, so that many agents do not come back all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from math import isfinite

from trio_agent._messages import Value

__all__ = ["RetryPolicy", "parse_retry_after"]


class RetryPolicy(Value, frozen=True, kw_only=True, gc=False):
    """How often and after which delays a request is made again. All times are seconds.

    Attributes:
        attempts: requests in all; 1 makes none again.
        base_delay: before the first retry.
        max_delay: the longest delay that is chosen here.
        jitter: share of such a delay that chance may cut off, from 0 to 1.
        max_server_delay: the longest delay that a server may ask for; a request that it would hold back for longer
            fails at once. 0 for no bound. ``StreamOptions.max_retry_delay`` counts instead where it is given.

    Raises:
        ValueError: a value is out of its range.
    """

    attempts: int = 3
    base_delay: float = 0.5
    max_delay: float = 8.0
    jitter: float = 0.25
    max_server_delay: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts must be 1 or more, not {self.attempts!r}")
        for name in ("base_delay", "max_delay", "max_server_delay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more seconds, not {getattr(self, name)!r}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be from 0 to 1, not {self.jitter!r}")

    def delay(self, failures: int, *, chance: float) -> float:
        """The delay before the next attempt where the server names none.

        Args:
            failures: attempts that have failed, 1 or more.
            chance: from 0 to 1; decides how much of the delay is cut off.
        """
        # The exponent is bounded, as a float is: a policy may have a thousand attempts.
        return min(self.base_delay * 2.0 ** min(failures - 1, 63), self.max_delay) * (1 - chance * self.jitter)


def parse_retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """The seconds that a server asks to wait; ``None`` if it names no time that makes sense.

    ``retry-after-ms`` counts before ``retry-after``, which may be seconds or a date. A date is compared with the
    server's own clock where the response tells it: that of the client may be wrong.

    Args:
        headers: of the response, with names in lower case.
        now: seconds since the epoch.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    at = _date(value)
    if at is None:
        return None
    server_now = _date(headers.get("date"))
    return max(0.0, at - (now if server_now is None else server_now))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _date(text: str | None) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    # Dates of HTTP are in UTC, also where they do not say so.
    try:
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        return None
