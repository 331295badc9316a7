"""cancel_everywhere: stop a run at every point of its schedule, and check each time what must hold."""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import trio
import trio.testing

from trio_agent._agent import Agent
from trio_agent.testing._scheduling import deterministic_scheduling
from trio_agent.testing._sweep_attempt import Action, Attempt, Scenario

__all__ = ["SweepReport", "cancel_everywhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep has done.

    Attributes:
        runs: attempts, each with the action at another point or with another seed.
        slowest_stop: the longest virtual time from an action that stops a run to its end, in seconds.
    """

    runs: int
    slowest_stop: float


def cancel_everywhere(
    make_run: Callable[[], Agent | Scenario],
    *,
    action: Action | Sequence[Action] = "cancel",
    seeds: Iterable[int] = (0,),
    points: Iterable[int] | None = None,
    stop_within: float = math.inf,
    max_seconds: float = 1000.0,
    max_steps: int = 100_000,
) -> SweepReport:
    """Run a scripted scenario once for each point of its schedule, do the action there, and check what must hold.

    A point is a moment at which Trio passes from one step of a task to the next: everything that can go wrong when a
    run is stopped goes wrong at one of them, and there are only some hundreds. The sweep goes through all of them, for
    each seed in another order of tasks, on a virtual clock. Use it on your own tools, hooks and listeners::

        def make_run():
            model = ScriptedModel([Answer(calls=[tool_call("transfer", amount=3)]), "Done."])
            return Agent(model.model, stream_fn=model, tools=[transfer])


        def test_transfers_can_be_stopped_anywhere():
            for action in ("cancel", "abort"):
                cancel_everywhere(make_run, action=action, seeds=range(3))

    The actions:

    * ``"cancel"``: the caller of the run is cancelled;
    * ``"abort"``: ``agent.abort()``;
    * ``"interrupt"``: Ctrl-C;
    * ``"cancel_watcher"``: the task of the first watcher is cancelled; the run goes on;
    * ``"cancel_tool"``: ``run.cancel_tool()`` with the first call that is on, if there is one;
    * a function: is called with the agent, must not block.

    A sequence of actions is done at points that follow each other: ``("abort", "cancel")``.

    What is checked after each run:

    * it has come to an end, and raised nothing but what it had to;
    * if it was stopped, that took no longer than ``stop_within``;
    * no task of it is left, and no slot of a limiter is taken; the agent knows that it is idle;
    * the transcript is valid (``check_transcript``);
    * the events are well nested and closed (``check_events``), unless the grace for closing events was used up; every
      watcher saw the same events in the same order, and those that were not cancelled saw them all;
    * after an abort, no request was made, no hook was asked, no tool body was entered, and no listener was cut;
    * queued messages are in the transcript or still in their queue, once, in order;
    * the agent can be prompted again, and then all of this holds, too.

    Call it from a plain function in the main thread: it calls ``trio.run`` itself, so that a test that uses it is not
    ``async``. Tools that work in threads, on sockets or with processes do not go with a virtual clock. ``finish_turn``
    is the one hook that an abort does not forbid.

    Args:
        make_run: makes an agent to be prompted with ``"go"``, or a :class:`Scenario` that says more. It is called for
            each attempt, inside Trio, and must make everything anew, always in the same way; nothing may depend on real
            time.
        action: what is done, once for each attempt.
        seeds: of the order of tasks.
        points: only these points, counted from 1; to replay a failure, or ``range(1, 10_000, 7)`` to save time.
        stop_within: virtual seconds that a run may take from an action that stops it to its end.
        max_seconds: of virtual time that a run may take.
        max_steps: of tasks that a run may take.

    Returns:
        How much was done.

    Raises:
        AssertionError: something did not hold. The text says what, with which seed, at which point, in which task and
            line, and how to run just this attempt again.
    """
    # A str is a sequence, too, as type checkers see it.
    actions = cast("Sequence[Action]", (action,) if isinstance(action, str) or callable(action) else tuple(action))
    if "interrupt" in actions:
        _check_can_be_interrupted()
    runs, slowest = 0, 0.0
    wanted = None if points is None else list(points)
    for seed in seeds:
        for point in count(1) if wanted is None else wanted:
            attempt = _attempt(
                make_run, seed, actions, point, stop_within=stop_within, max_seconds=max_seconds, max_steps=max_steps
            )
            if attempt.problem is not None:
                raise AssertionError(_explain(attempt, seed, point, actions)) from attempt.problem
            runs += 1
            slowest = max(slowest, attempt.stop_time)
            if not attempt.steps.done:
                break  # the run was over before this point: that was the undisturbed run
    return SweepReport(runs=runs, slowest_stop=slowest)


def _attempt(
    make_run: Callable[[], Agent | Scenario], seed: int, actions: Sequence[Action], point: int, **limits: Any
) -> Attempt:
    async def main() -> Attempt:
        made = make_run()
        scenario = made if isinstance(made, Scenario) else Scenario(agent=made)
        attempt = Attempt(scenario, actions, point, **limits)
        trio.lowlevel.add_instrument(attempt.steps)
        await attempt.main()
        return attempt

    with deterministic_scheduling(seed):
        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def _check_can_be_interrupted() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the action 'interrupt' needs the main thread: only there Python delivers Ctrl-C")
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        raise RuntimeError("the action 'interrupt' needs Python's own handler of SIGINT")


def _explain(attempt: Attempt, seed: int, point: int, actions: Sequence[Action]) -> str:
    problem = attempt.problem
    text = str(problem) if isinstance(problem, AssertionError) else f"{type(problem).__name__}: {problem}"
    done = [f"  {_name(action)} at {place}" for action, place in zip(actions, attempt.steps.done, strict=False)] or [
        "  nothing was done to it: the scenario itself fails"
    ]
    named = ", ".join(_name(action) for action in actions)
    again = f"cancel_everywhere(make_run, action=({named},), seeds=[{seed}], points=[{point}])"
    return "\n".join([text, *done, f"  again: {again}"])


def _name(action: Action) -> str:
    return repr(action) if isinstance(action, str) else getattr(action, "__name__", repr(action))
