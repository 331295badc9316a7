"""Hypothesis strategies for scripts of whole runs: what the model answers, what tools, hooks and handlers do, and what
happens to the run meanwhile.

A script is plain data, so that a failing one can be read. All times are on a coarse grid: what matters is what falls
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from trio_agent import BlockToolCall, Hooks, ModelError, ToolCall, ToolResultPatch, TurnUpdate, UserMessage
from trio_agent.testing import Answer

__all__ = ["Boom", "Disturbance", "Handler", "HookPlan", "Plan", "RandomScript", "scripts"]


class Boom(Exception):  # noqa: N818
    """What hooks and listeners of a script raise."""


Plan: TypeAlias = list[list[Any]]
"""The steps of a tool's body, each a word and what belongs to it."""

_TICK = 0.05


def _times(ticks: int) -> st.SearchStrategy[float]:
    return st.integers(0, ticks).map(lambda tick: tick * _TICK)


def _steps(inner: st.SearchStrategy[Plan] | None) -> st.SearchStrategy[list[Any]]:
    waits = [st.tuples(st.just(word), _times(4)).map(list) for word in ("wait", "shield", "swallow")]
    words = [st.just([word]) for word in ("update", "fail", "refuse", "fail_in_nursery", "steer", "follow_up", "abort")]
    nested = [] if inner is None else [st.tuples(st.just(word), _tools, inner).map(list) for word in ("call", "call2")]
    # Waiting, first and most of all: it is what can be stopped.
    return st.one_of(*waits, waits[0], *words, *nested)


_tools = st.sampled_from(["act", "act", "act", "hasty", "limited", "alone", "in_order"])
_leaves = st.lists(_steps(None), max_size=3)
_plans: st.SearchStrategy[Plan] = st.lists(_steps(st.lists(_steps(_leaves), max_size=2)), max_size=4)


def _call(name: str, plan: Plan, wrong: bool) -> ToolCall:
    return ToolCall(id="", name=name, arguments={} if wrong else {"plan": plan})


_calls = st.lists(
    st.builds(_call, st.one_of(_tools, _tools, st.just("missing")), _plans, st.integers(0, 7).map(lambda n: n == 0)),
    max_size=4,
)


@st.composite
def _answers(draw: st.DrawFn) -> Answer:
    fails = draw(st.integers(0, 5)) == 0
    ends = draw(st.integers(0, 5)) == 0
    return Answer(
        text=draw(st.sampled_from(["", "Hello there"])),
        thinking=draw(st.sampled_from(["", "", "hm"])),
        calls=draw(_calls),
        stop_reason=draw(st.sampled_from(["length", "error", "aborted", "stop"])) if ends else None,
        chunk_size=draw(st.sampled_from([None, 4])),
        connect_delay=draw(_times(2)),
        delay=draw(st.sampled_from([0.0, 0.0, 0.01, _TICK])),
        fail=ModelError("connection lost") if fails else None,
        fail_after=draw(st.none() | st.integers(0, 6)) if fails else None,
    )


@dataclass(frozen=True, slots=True)
class HookPlan:
    """What the hooks of a script do.

    Attributes:
        waits: how long each hook that is asked takes, by its name.
        says: what each of them decides.
        raises: the hook that fails, if one does.
    """

    waits: dict[str, float]
    says: dict[str, Any]
    raises: str | None


_SAYS: dict[str, list[Any]] = {
    "transform_context": [None],
    "get_api_key": [None],
    "prepare_request": [None],
    "before_tool_call": [None, None, BlockToolCall("no"), BlockToolCall("no", terminate=True)],
    "after_tool_call": [None, ToolResultPatch(content="seen"), ToolResultPatch(terminate=True)],
    "finish_turn": [None, "continue", "end"],
    "should_stop_after_turn": [False, True],
    "prepare_next_turn": [None, TurnUpdate(messages=[UserMessage(content="more", timestamp=0)])],
}
assert set(_SAYS) < set(Hooks.__dataclass_fields__)


@st.composite
def _hook_plans(draw: st.DrawFn) -> HookPlan:
    waits = draw(st.dictionaries(st.sampled_from(sorted(_SAYS)), _times(2), max_size=4))
    says = {name: draw(st.sampled_from(_SAYS[name])) for name in waits}
    raises = draw(st.none() | st.none() | st.sampled_from(sorted(waits))) if waits else None
    return HookPlan(waits, says, raises)


@dataclass(frozen=True, slots=True)
class Handler:
    """A listener or watcher.

    Attributes:
        takes: seconds for an event.
        buffer: of a watcher.
        leaves_after: a watcher leaves, or a listener raises ``Boom``, at the event with this number.
    """

    takes: float
    buffer: int
    leaves_after: int | None


_handlers = st.builds(
    Handler, st.sampled_from([0.0, 0.01, _TICK]), st.sampled_from([0, 0, 3]), st.none() | st.integers(1, 30)
)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that happens to a run.

    Attributes:
        at: when, in seconds.
        what: happens.
        number: of the call that is cancelled.
    """

    at: float
    what: Literal["cancel", "abort", "cancel_tool", "steer", "follow_up"]
    number: int


_disturbances = st.lists(
    st.builds(
        Disturbance,
        st.integers(0, 40).map(lambda tick: tick * _TICK / 2),
        st.sampled_from(["cancel", "abort", "cancel_tool", "steer", "follow_up"]),
        st.integers(0, 4),
    ),
    max_size=4,
).map(lambda found: sorted(found, key=lambda item: item.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomScript:
    """A run, and what happens to it.

    Attributes:
        answers: of the model.
        hooks: what they do.
        listeners: in order.
        watchers: each in a task of its own.
        disturbances: in order.
        watched: through ``agent.run()``.
        sequential: the agent's mode of running tools.
        slots: of the agent's limiter; ``None`` for no limit.
        steering: how many messages wait when the run begins.
        follow_ups: the same.
        takes_all: both queues are emptied at once.
        max_turns: of the agent.
        seed: of the order of tasks.
    """

    answers: list[Answer]
    hooks: HookPlan
    listeners: list[Handler]
    watchers: list[Handler]
    disturbances: list[Disturbance]
    watched: bool
    sequential: bool
    slots: int | None
    steering: int
    follow_ups: int
    takes_all: bool
    max_turns: int | None
    seed: int


scripts: st.SearchStrategy[RandomScript] = st.builds(
    RandomScript,
    answers=st.lists(_answers(), min_size=1, max_size=3),
    hooks=_hook_plans(),
    listeners=st.lists(_handlers, max_size=2),
    watchers=st.lists(_handlers, max_size=2),
    disturbances=_disturbances,
    watched=st.booleans(),
    sequential=st.integers(0, 3).map(lambda n: n == 0),
    slots=st.sampled_from([None, None, 1, 2]),
    steering=st.sampled_from([0, 0, 1, 2]),
    follow_ups=st.sampled_from([0, 0, 1, 2]),
    takes_all=st.booleans(),
    max_turns=st.sampled_from([None, None, None, 2]),
    seed=st.integers(0, 3),
)
