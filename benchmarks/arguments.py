"""What does it cost to check the arguments of a call and bring them into the types of the tool?

Unit: microseconds a call, of ``tool.bind`` with arguments that fit, as nearly all do. Beside it, for tools made of a
function: ``msgspec.convert`` to a Struct of the same fields. For tools made of a JSON Schema: the validator of
``jsonschema`` for the same schema, made once. Flat arguments are three values; nested ones have as many edits as the
size says, of six values each.

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


def _sets(plan: Plan) -> Iterable[tuple[str, int, Tool, type[msgspec.Struct], JsonObject]]:
    yield "flat", 1, small, _Small, {"path": "a/b.py", "limit": 100, "ratio": 0.5}
    for edits in plan.sizes(5):
        yield "nested", edits, nested, _Nested, {"path": "a/b.py", "edits": [_EDIT] * edits}


def cases(plan: Plan) -> Iterable[Case]:
    for name, size, made, struct, arguments in _sets(plan):
        yield Case(
            series=f"function, {name}",
            size=size,
            ours=timed(partial(made.bind, arguments), plan.clock),
            bare=timed(partial(msgspec.convert, arguments, struct), plan.clock),
        )
    for name, size, made, _, arguments in _sets(plan):
        by_schema = Tool(name=made.name, parameters=made.parameters, execute=_execute)
        validator: Any = jsonschema.Draft202012Validator(made.parameters)
        yield Case(
            series=f"schema, {name}",
            size=size,
            ours=timed(partial(by_schema.bind, arguments), plan.clock),
            bare=timed(partial(validator.is_valid, arguments), plan.clock),
        )


BENCHMARK = Benchmark(name="arguments", unit=Unit("us a call"), cases=cases)
