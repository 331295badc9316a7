"""Random runs of an agent, disturbed at random times: whatever happens, what is promised of every run holds.

The sweep goes through every point of runs that were thought of; here are those that nobody has thought of.
``RANDOM_RUNS=20000 pytest tests/test_random_runs.py`` looks for new ones; by default the same ones are tried each time.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from random_scripts import Boom, Disturbance, Handler, HookPlan, RandomScript, scripts

from trio_agent import (
    Agent,
    AgentEvent,
    AgentMessage,
    AgentRun,
    Hooks,
    Tool,
    ToolContext,
    ToolError,
    UserMessage,
    tool,
)
from trio_agent.testing import ScriptedModel, check_events, check_transcript, deterministic_scheduling

_RANDOM = "RANDOM_RUNS" in os.environ
_EXAMPLES = int(os.environ.get("RANDOM_RUNS", "300"))
_SETTINGS = settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=not _RANDOM,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_GRACE = 1.0
_ENDLESS = 10_000


class World:
    """An agent that lives through a script.

    Attributes:
        agent: with everything that the script says.
        recorded: its events.
        logs: of the watchers that did not leave.
    """

    def __init__(self, script: RandomScript) -> None:
        self.script = script
        self.recorded: list[AgentEvent] = []
        self.logs: list[list[AgentEvent]] = []
        self.models = [ScriptedModel(script.answers)]
        self.limiters = [trio.CapacityLimiter(1)]
        if script.slots is not None:
            self.limiters.append(trio.CapacityLimiter(script.slots))
        self.queued: dict[str, list[AgentMessage]] = {"steer": [], "follow_up": []}
        self.aborted = False
        self.late: list[str] = []
        self.is_over = False
        self.bodies = 0
        self.booms: list[Boom] = []
        self.cancelled_at: float | None = None
        self.agent = Agent(
            self.models[0].model,
            system_prompt="Be brief.",
            tools=self._tools(),
            stream_fn=self._ask,
            hooks=self._hooks(),
            tool_execution="sequential" if script.sequential else "parallel",
            limiter=None if script.slots is None else self.limiters[-1],
            steering_mode="all" if script.takes_all else "one-at-a-time",
            follow_up_mode="all" if script.takes_all else "one-at-a-time",
            max_turns=script.max_turns,
            closing_grace=_GRACE,
        )
        self._record()
        for listener in script.listeners:
            self.agent.subscribe(self._listening(listener))
        for _ in range(script.steering):
            self.queue("steer")
        for _ in range(script.follow_ups):
            self.queue("follow_up")

    def _record(self) -> None:
        # Where they are made, and not as a listener: a watcher that is alone gets them in batches.
        sink = self.agent._sink
        emit, emit_all = sink.emit, sink.emit_all

        def record(event: AgentEvent) -> AgentEvent:
            self.recorded.append(event)
            return event

        sink.emit = lambda event: emit(record(event))
        sink.emit_all = lambda events: emit_all(map(record, events))

    # -- what the script says ----------------------------------------------------------------------------------------

    def _tools(self) -> list[Tool]:
        return [
            tool(name="act")(self.act),
            tool(name="hasty", timeout=0.12)(self.act),
            tool(name="limited", limiter=self.limiters[0])(self.act),
            tool(name="alone", execution_mode="exclusive")(self.act),
            tool(name="in_order", execution_mode="sequential")(self.act),
        ]

    async def act(self, plan: list[list[Any]], *, ctx: ToolContext) -> str:
        """Do what the plan says."""
        self._note("a body")
        self.bodies += 1
        try:
            for word, *rest in plan:
                await self._step(word, rest, ctx)
        finally:
            self.bodies -= 1
        return "acted"

    async def _step(  # noqa: C901  # a table
        self, word: str, rest: list[Any], ctx: ToolContext
    ) -> None:
        match word:
            case "wait":
                await trio.sleep(rest[0])
            case "shield":
                with trio.CancelScope(shield=True):
                    await trio.sleep(rest[0])
            case "swallow":
                with contextlib.suppress(trio.Cancelled):
                    await trio.sleep(rest[0])
            case "update":
                await ctx.update("going on")
            case "fail":
                raise ValueError("failed")
            case "refuse":
                raise ToolError("refused")
            case "fail_in_nursery":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(trio.sleep, 0.05)
                    nursery.start_soon(_fail_later, 0.05)
            case "call":
                await ctx.call_tool(rest[0], {"plan": rest[1]})
            case "call2":
                async with trio.open_nursery() as nursery:
                    for _ in range(2):
                        nursery.start_soon(ctx.call_tool, rest[0], {"plan": rest[1]})
            case "abort":
                self.abort()
            case _:
                self.queue(word)

    def _hooks(self) -> Hooks:
        hooks: dict[str, Any] = {name: self._hook(name, self.script.hooks) for name in self.script.hooks.waits}
        return Hooks(**hooks)

    def _hook(self, name: str, plan: HookPlan) -> Callable[..., Awaitable[Any]]:
        async def hook(subject: Any) -> Any:
            if name != "finish_turn":  # which is asked after an abort, too
                self._note(f"hook {name}")
            await trio.sleep(plan.waits[name])
            if plan.raises == name:
                exc = Boom(name)
                if name not in {"before_tool_call", "after_tool_call"}:  # of which a result is made
                    self.booms.append(exc)
                raise exc
            return subject if name == "transform_context" else plan.says[name]

        return hook

    def _listening(self, listener: Handler) -> Callable[[AgentEvent], Awaitable[None]]:
        left = listener.leaves_after

        async def listen(_event: AgentEvent) -> None:
            nonlocal left
            await trio.sleep(listener.takes)
            if left is not None:
                left -= 1
                if left == 0:
                    exc = Boom("listener")
                    self.booms.append(exc)
                    raise exc

        return listen

    def _ask(self, *request: Any) -> Any:
        self._note("a request")
        return self.models[-1](*request)

    def _note(self, what: str) -> None:
        if self.aborted:
            self.late.append(what)

    def abort(self) -> None:
        self.aborted |= self.agent.is_running
        self.agent.abort()

    def queue(self, where: str) -> None:
        queued = self.queued[where]
        message = UserMessage(content=f"{where} {len(queued)}", timestamp=0)
        queued.append(message)
        getattr(self.agent, where)(message)

    # -- the run -----------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Run the script, and check what must hold."""
        tasks = trio.lowlevel.current_statistics().tasks_living
        with trio.move_on_after(_ENDLESS) as guard:
            async with trio.open_nursery() as nursery:
                for watcher in self.script.watchers:
                    await nursery.start(self._watch, watcher)
                await self._disturbed_run(nursery)
                self._check_run()
                await self._prompt_again()
                nursery.cancel_scope.cancel()
        assert not guard.cancelled_caught, "the run has not come to an end"
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        for log in self.logs:
            assert [id(event) for event in log] == [id(event) for event in self.recorded[: len(log)]]

    async def _watch(self, watcher: Handler, task_status: trio.TaskStatus[None]) -> None:
        log: list[AgentEvent] = []
        self.logs.append(log)
        with self.agent.events(buffer=watcher.buffer) as events:
            task_status.started()
            async for event in events:
                log.append(event)
                if watcher.leaves_after == len(log):
                    return
                await trio.sleep(watcher.takes)

    async def _disturbed_run(self, nursery: trio.Nursery) -> None:
        self.handle: AgentRun | None = None
        with trio.CancelScope() as scope:
            for disturbance in self.script.disturbances:
                nursery.start_soon(self._disturb, disturbance, scope)
            try:
                if self.script.watched:
                    async with self.agent.run("go") as self.handle:
                        async for _ in self.handle:
                            pass
                else:
                    await self.agent.prompt("go")
            except (Boom, ExceptionGroup) as exc:
                self._check_raised(exc)
            else:
                assert not self.booms or scope.cancelled_caught, "an exception was lost"
        self.is_over = True
        self.closing_time = 0.0 if self.cancelled_at is None else trio.current_time() - self.cancelled_at

    async def _disturb(self, disturbance: Disturbance, scope: trio.CancelScope) -> None:
        await trio.sleep(disturbance.at)
        if self.is_over or not self.agent.is_running:
            return
        match disturbance.what:
            case "cancel":
                if self.cancelled_at is None:
                    self.cancelled_at = trio.current_time()
                scope.cancel()
            case "abort":
                self.abort()
            case "cancel_tool":
                pending = self.agent.state.pending_tool_calls
                if self.handle is not None and disturbance.number < len(pending):
                    self.handle.cancel_tool(pending[disturbance.number])
            case word:
                self.queue(word)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def _check_raised(self, exc: Exception) -> None:
        if len(self.booms) == 1:
            assert exc is self.booms[0]
        else:
            assert _is_of_booms(exc)

    def _check_run(self) -> None:
        assert not self.late, f"after an abort, the run asked for {self.late}"
        assert not self.bodies, "a body outlives the run"
        assert not self.agent.is_running
        assert not self.agent.state.is_streaming
        assert not self.agent.state.pending_tool_calls
        self._check_what_stays()

    def _check_what_stays(self) -> None:
        check_transcript(self.agent.messages)
        check_events(self.recorded, complete=self.closing_time < _GRACE)
        assert [limiter.borrowed_tokens for limiter in self.limiters] == [0] * len(self.limiters)
        waiting = {"steer": self.agent.queued_steering, "follow_up": self.agent.queued_follow_ups}
        for where, queued in self.queued.items():
            ids = {id(message) for message in queued}
            found = [id(message) for message in [*self.agent.messages, *waiting[where]] if id(message) in ids]
            assert found == [id(message) for message in queued], f"{where}: lost, doubled or reordered"

    async def _prompt_again(self) -> None:
        self.aborted = False
        self.agent.hooks = Hooks()
        if self.closing_time >= _GRACE:
            del self.recorded[:]
            for log in self.logs:
                log.clear()
        # A listener may yet come to the event at which it raises; it does so once.
        for _ in range(1 + len(self.script.listeners)):
            model = ScriptedModel(["Here I am."] * 50)
            self.models.append(model)
            try:
                result = await self.agent.prompt("Are you still there?")
            except (Boom, ExceptionGroup) as exc:
                if not _is_of_booms(exc):
                    raise
                continue
            assert result.stop_reason == "stop"
            assert model.requests
            break
        else:
            raise AssertionError("the agent cannot be prompted again")
        self._check_what_stays()


async def _fail_later(seconds: float) -> None:
    await trio.sleep(seconds)
    raise ValueError("failed in a task")


def _is_of_booms(exc: BaseException) -> bool:
    """Whether several listeners or hooks failed at once, and nothing else."""
    return isinstance(exc, Boom) or (
        isinstance(exc, ExceptionGroup) and all(_is_of_booms(inner) for inner in exc.exceptions)
    )


def _live(script: RandomScript) -> World:
    world = World(script)
    logger = logging.getLogger("trio_agent")  # what a tool's failure logs costs more than all the rest
    logger.disabled = True
    try:
        with deterministic_scheduling(script.seed):
            trio.run(world.live, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        logger.disabled = False
    return world


@_SETTINGS
@given(scripts)
def test_what_is_promised_of_a_run_holds_for_random_ones(script: RandomScript) -> None:
    _live(script)


@settings(_SETTINGS, max_examples=_EXAMPLES // 6)
@given(scripts)
def test_a_random_run_is_a_function_of_its_script(script: RandomScript) -> None:
    first, second = _live(script), _live(script)

    assert [type(event) for event in first.recorded] == [type(event) for event in second.recorded]
    assert _outline(first.agent.messages) == _outline(second.agent.messages)


def _outline(messages: Any) -> list[Any]:
    return [(type(message), message.content) for message in messages]
