"""What an exception says, and which one of a group is meant."""

from __future__ import annotations

from typing import cast

import trio

__all__ = ["bare", "describe", "split_cancelled"]


def describe(exc: BaseException) -> str:
    """The text of an exception for a model or a message: its own, its leaves', or at least its type's name."""
    if isinstance(exc, BaseExceptionGroup):
        found = leaves(cast("BaseException", exc))
        return "; ".join(f"{type(leaf).__name__}: {describe(leaf)}" for leaf in found)
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001
        text = ""
    return text or type(exc).__name__


def leaves(exc: BaseException) -> list[BaseException]:
    """The exceptions in a group that are no groups, in order; the exception itself if it is none."""
    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return [leaf for inner in group.exceptions for leaf in leaves(inner)]
    return [exc]


def split_cancelled(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Split an exception into its cancellation and the rest; each ``None`` if there is none of it."""
    if isinstance(exc, trio.Cancelled):
        return exc, None
    if isinstance(exc, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", exc).split(trio.Cancelled)
    return None, exc


def bare(exc: BaseException) -> BaseException:
    """The one exception that a group stands for.

    A nursery wraps even a single error. Out of it comes: a ``KeyboardInterrupt`` or another exception that is no
    ``Exception``, if there is one; else the only real error; else, for several real errors, the group of these. A group
    of cancellations alone stays as it is, for the scopes around it to take apart.
    """
    _, real = split_cancelled(exc)
    if real is None or not isinstance(exc, BaseExceptionGroup):
        return exc
    errors = leaves(real)
    for error in errors:
        if not isinstance(error, Exception):
            return error
    return errors[0] if len(errors) == 1 else real
