"""What does it cost to check the arguments of a call and bring them into the types of the tool?

Unit: microseconds a call, of ``tool.bind`` with arguments that fit, as nearly all do. Beside it, for tools made of a
function: ``msgspec.convert`` to a Struct of the same fields. For tools made of a JSON Schema: the validator of
``jsonschema`` for the same schema, made once. Two sets of arguments, by the number of their values: a small one of
three, and a nested one of thirty-one in five edits.

Not shown: arguments that must be coerced or are refused, which cost a validator and more; the reading of their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
from msgspec import Meta

from benchmarks._harness import Benchmark, Case, Plan, Unit, timed
from trio_agent import JsonObject, Tool, ToolContext, tool

__all__ = ["BENCHMARK"]


class _Lines(msgspec.Struct):
    start: Annotated[int, Meta(ge=1)]
    end: Annotated[int, Meta(ge=1)]


class _Edit(msgspec.Struct, forbid_unknown_fields=True):
    old: str
    new: str
    lines: _Lines | None = None
    mode: Literal["once", "all"] = "once"
    count: int = 1


class _Small(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    limit: int
    ratio: float


class _Nested(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    edits: list[_Edit]


@tool
async def small(path: str, limit: int, ratio: float) -> None:
    """Take three values."""


@tool
async def nested(path: str, edits: list[_Edit]) -> None:
    """Take a list of objects with objects in them."""


async def _execute(arguments: JsonObject, ctx: ToolContext) -> None: ...


_EDIT: JsonObject = {"old": "a", "new": "b", "lines": {"start": 1, "end": 4}, "mode": "all", "count": 3}
_SETS: tuple[tuple[Tool, type[msgspec.Struct], JsonObject, int], ...] = (
    (small, _Small, {"path": "a/b.py", "limit": 100, "ratio": 0.5}, 3),
    (nested, _Nested, {"path": "a/b.py", "edits": [_EDIT] * 5}, 31),
)


def cases(plan: Plan) -> Iterable[Case]:
    for made, struct, arguments, size in _SETS:
        yield Case(
            series="function",
            size=size,
            ours=timed(partial(made.bind, arguments), plan.clock),
            bare=timed(partial(msgspec.convert, arguments, struct), plan.clock),
        )
    for made, _, arguments, size in _SETS:
        by_schema = Tool(name=made.name, parameters=made.parameters, execute=_execute)
        validator: Any = jsonschema.Draft202012Validator(made.parameters)
        yield Case(
            series="schema",
            size=size,
            ours=timed(partial(by_schema.bind, arguments), plan.clock),
            bare=timed(partial(validator.is_valid, arguments), plan.clock),
        )


BENCHMARK = Benchmark(name="arguments", unit=Unit("us a call"), cases=cases)
