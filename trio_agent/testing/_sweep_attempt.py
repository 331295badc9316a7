"""One attempt of a sweep: a scenario, run once with its actions at their points, and what must hold afterwards."""

# pyright: reportPrivateUsage=false
# A sweep looks at what has no public door, and must not give it one.

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import trio

from trio_agent._agent import Agent
from trio_agent._agent_events import AgentEnd, AgentEvent, MessageUpdate, ToolExecutionEnd
from trio_agent._agent_run import AgentRun
from trio_agent._call_state import ABORTED, error_result
from trio_agent._failures import bare
from trio_agent._messages import AssistantMessage, ToolResultMessage
from trio_agent._prompts import Prompt
from trio_agent._tool_body import _own_limiter
from trio_agent.testing._check import check_transcript
from trio_agent.testing._check_events import check_events
from trio_agent.testing._probe import Probe
from trio_agent.testing._scripted import ScriptedModel
from trio_agent.testing._steps import StepInstrument, describe_tasks

__all__ = ["Action", "Attempt", "Scenario"]

Action: TypeAlias = Literal["cancel", "abort", "interrupt", "cancel_watcher", "cancel_tool"] | Callable[[Agent], None]
"""What is done to a run; see :func:`cancel_everywhere`."""

_ENOUGH = 50


async def _only_watch(_event: AgentEvent) -> None:
    await trio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a sweep runs, made anew for each attempt.

    Attributes:
        agent: fresh, with a model that answers from a script, its tools, hooks, listeners and queued messages.
        prompt: the run begins with it; ``None`` goes on without one.
        watched: run it through ``agent.run()`` and iterate it, instead of ``agent.prompt()``.
        watchers: bodies of further watchers, each in a task of its own, outside of what is cancelled; a second one is
            cancelled together with the run.
        listened: a listener makes each delivery to watchers a checkpoint. Without it, a watcher that is alone takes
            events in batches.
        leaves_after: a run that is ``watched`` is left after so many events; ``None`` for not before its end.
        raises: what a listener or hook of the scenario makes the run raise in the ordinary course.
        check: is given the agent when the run is over, and raises ``AssertionError`` if something does not hold that
            must hold in this scenario.
    """

    agent: Agent
    prompt: Prompt | None = "go"
    watched: bool = False
    watchers: Sequence[Callable[[AgentEvent], Awaitable[None]]] = (_only_watch,)
    listened: bool = True
    leaves_after: int | None = None
    raises: type[Exception] | None = None
    check: Callable[[Agent], None] | None = None


@contextmanager
def _recording(agent: Agent, note: Callable[[AgentEvent], None]) -> Generator[None]:
    # Where they are made, and not as a listener: a watcher that is alone gets them in another way than one that is not.
    sink = agent._sink
    emit, emit_all = sink.emit, sink.emit_all

    def noted(event: AgentEvent) -> AgentEvent:
        note(event)
        return event

    sink.emit = lambda event: emit(noted(event))
    sink.emit_all = lambda events: emit_all(map(noted, events))
    try:
        yield
    finally:
        sink.emit, sink.emit_all = emit, emit_all


class _Watcher:
    def __init__(self, name: str, body: Callable[[AgentEvent], Awaitable[None]]) -> None:
        self.name = name
        self.body = body
        self.scope = trio.CancelScope()
        self.log: list[AgentEvent] = []


class Attempt:
    """One attempt.

    Args:
        scenario: a fresh one.
        actions: done at successive points.
        first: the first of these points.
        stop_within: virtual seconds that a stop may take.
        max_seconds: of virtual time, and ...
        max_steps: ... of tasks, before the attempt is stuck.

    Attributes:
        steps: the instrument that it needs.
        problem: what did not hold.
        stop_time: virtual seconds from the first action that stops the run to its end; for a call that is cancelled
            alone, to the end of the call.
    """

    def __init__(
        self,
        scenario: Scenario,
        actions: Sequence[Action],
        first: int,
        *,
        stop_within: float,
        max_seconds: float,
        max_steps: int,
    ) -> None:
        self.problem: BaseException | None = None
        self.stop_time = 0.0
        self._scenario = scenario
        self._agent = scenario.agent
        self._actions = actions
        self._stop_within = stop_within
        self._max_seconds = max_seconds
        self.steps = StepInstrument(
            first, [self._doing(action) for action in actions], max_steps=max_steps, spinning=self._spins
        )
        self._scope = trio.CancelScope()
        self._guard_scope = trio.CancelScope()
        self._stopped_at: float | None = None
        self._handle: AgentRun | None = None
        self._recorded: list[AgentEvent] = []
        self._watchers = [_Watcher(f"watcher {i}", body) for i, body in enumerate(scenario.watchers)]
        self._body_log: list[AgentEvent] = []
        self._listened: list[AgentEvent] = []
        self._cut: list[str] = []
        self._cancelled_calls: dict[str, float] = {}
        self._has_returned = False
        self._was_interrupted = False
        self._watching = 0

    # -- the actions, done by the instrument -------------------------------------------------------------------------

    def _doing(self, action: Action) -> Callable[[], None]:
        return (lambda: self._do(action)) if isinstance(action, str) else (lambda: action(self._agent))

    def _do(self, action: str) -> None:
        match action:
            case "cancel":
                self._note_stop()
                self._scope.cancel()
                for watcher in self._watchers[1:2]:
                    watcher.scope.cancel()
            case "abort":
                if self._agent.is_running:  # an abort of an agent that has not begun yet is no abort
                    self._note_stop()
                self._agent.abort()
            case "interrupt":
                self._note_stop()
                signal.raise_signal(signal.SIGINT)
            case "cancel_watcher":
                for watcher in self._watchers[:1]:
                    watcher.scope.cancel()
            case "cancel_tool":
                for call_id in self._agent.state.pending_tool_calls[:1]:
                    assert self._handle is not None
                    self._cancelled_calls.setdefault(call_id, trio.current_time())
                    self._handle.cancel_tool(call_id)
            case _:
                raise ValueError(action)

    def _note_stop(self) -> None:
        if self._stopped_at is None:
            self._stopped_at = trio.current_time()

    def _record(self, event: AgentEvent) -> None:
        self._recorded.append(event)
        if self._probe.stopped and isinstance(event, MessageUpdate):
            self._probe.late.append("more of an answer")
        if isinstance(event, ToolExecutionEnd) and event.tool_call_id in self._cancelled_calls:
            since = trio.current_time() - self._cancelled_calls[event.tool_call_id]
            self.stop_time = max(self.stop_time, since)

    def _spins(self, task: trio.lowlevel.Task) -> None:
        self._stuck(f"task {task.name!r} and the others go on without end")

    def _stuck(self, what: str) -> None:
        self.problem = AssertionError(f"{what}; the tasks are\n{describe_tasks(self._root)}")
        self._guard_scope.cancel()

    # -- the run -----------------------------------------------------------------------------------------------------

    async def main(self) -> None:
        """Run it all; ``problem`` says what came of it."""
        self._root = trio.lowlevel.current_task()
        self._tasks_before = trio.lowlevel.current_statistics().tasks_living
        self._probe = Probe(self._agent)
        try:
            with self._guard_scope, _recording(self._agent, self._record):
                if self._is_listened:
                    # Without watchers delivery may be no checkpoint at all, and that is another kind of run.
                    self._agent.subscribe(self._linger)
                await self._watch_and_run()
        except BaseException as exc:  # noqa: BLE001, ASYNC103  # it is the outcome of the attempt
            self.problem = self.problem or bare(exc)

    async def _watch_and_run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guard)
            for watcher in self._watchers:
                await nursery.start(self._watch, watcher)
            self._check(await self._run())
            await self._prompt_again()
            nursery.cancel_scope.cancel()

    async def _linger(self, event: AgentEvent) -> None:
        self._listened.append(event)
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            if not self._is_hurried:
                self._cut.append(type(event).__name__)
            raise

    async def _guard(self) -> None:
        await trio.sleep(self._max_seconds)
        self._stuck(f"the run has not come to an end after {self._max_seconds:g} virtual seconds")

    async def _watch(self, watcher: _Watcher, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        self._watching += 1
        try:
            with watcher.scope:
                async with self._agent.events() as events:
                    task_status.started()
                    async for event in events:
                        watcher.log.append(event)
                        await watcher.body(event)
        finally:
            self._watching -= 1

    async def _run(self) -> BaseException | None:
        self.steps.arm(self._root)
        error: BaseException | None = None
        try:
            with self._scope:
                await self._scenario_run()
                self._has_returned = True
        except (Exception, KeyboardInterrupt, BaseExceptionGroup) as exc:  # noqa: BLE001  # looked at by the caller
            error = exc
        self.steps.disarm()
        if self._stopped_at is not None:
            self.stop_time = trio.current_time() - self._stopped_at
        if "interrupt" in self._actions:
            try:
                await trio.sleep(0.001)
            except KeyboardInterrupt as exc:
                error = error or exc  # it came when the run was over
                self._was_interrupted = True
        self._was_interrupted |= isinstance(error, KeyboardInterrupt)
        return error

    async def _scenario_run(self) -> None:
        agent, prompt = self._agent, self._scenario.prompt
        if self._scenario.watched or "cancel_tool" in self._actions:
            async with agent.run(prompt) as self._handle:
                async for event in self._handle:
                    self._body_log.append(event)
                    if len(self._body_log) == self._scenario.leaves_after:
                        self._note_stop()
                        self._probe.stopped = True
                        break
        elif prompt is None:
            await agent.continue_()
        else:
            await agent.prompt(prompt)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def _check(self, error: BaseException | None) -> None:
        self._check_nothing_is_left()
        self._check_outcome(error)
        if self.stop_time > self._stop_within:
            raise AssertionError(f"it took {self.stop_time:g} virtual seconds to stop the run")
        check_transcript(self._agent.messages)
        self._probe.check_queues()
        if self._probe.late:
            raise AssertionError(f"asked for after the abort: {', '.join(self._probe.late)}")
        if self._cut:
            raise AssertionError(f"a listener was cancelled in the middle of {', '.join(self._cut)}")
        self._check_calls_cancelled_alone()
        check_events(self._recorded, complete=self._is_owed_everything)
        if self._is_listened:
            self._check_log("a listener", self._listened, complete=True)
        for watcher in self._watchers:
            self._check_log(watcher.name, watcher.log, complete=not watcher.scope.cancel_called)
        self._check_log("the body of the run", self._body_log, complete=False)
        if self._scenario.check is not None:
            self._scenario.check(self._agent)

    @property
    def _is_listened(self) -> bool:
        return self._scenario.listened and bool(self._watchers)

    @property
    def _is_hurried(self) -> bool:
        return bool({"cancel", "interrupt"} & set(self._actions))

    @property
    def _is_owed_everything(self) -> bool:
        return not self._is_hurried or self.stop_time < self._agent._state._config.closing_grace

    def _check_nothing_is_left(self) -> None:
        guard = 1
        left = trio.lowlevel.current_statistics().tasks_living - self._tasks_before - self._watching - guard
        if left:
            raise AssertionError(f"{left} tasks are left after the run:\n{describe_tasks(self._root)}")
        agent = self._agent
        no_threads = trio.CapacityLimiter(1)
        limiters = {"the default thread limiter": trio.to_thread.current_default_thread_limiter()}
        limiters["the library's thread limiter"] = _own_limiter.get(no_threads)
        if agent._thread_limiter is not None:
            limiters["the agent's thread limiter"] = agent._thread_limiter
        limiters |= {f"the limiter of {tool.name!r}": tool.limiter for tool in agent.tools if tool.limiter is not None}
        if agent._state._config.limiter is not None:
            limiters["the agent's limiter"] = agent._state._config.limiter
        for name, limiter in limiters.items():
            if limiter.borrowed_tokens:
                raise AssertionError(f"{limiter.borrowed_tokens} slots of {name} are still taken after the run")
        state = agent.state
        if agent.is_running or state.streaming_message is not None or state.pending_tool_calls:
            raise AssertionError(f"the agent does not know that the run is over: {state!r}")

    def _check_outcome(self, error: BaseException | None) -> None:
        expected: tuple[type[BaseException], ...] = ()
        if "interrupt" in self._actions:
            expected += (KeyboardInterrupt,)
        if self._scenario.raises is not None:
            expected += (self._scenario.raises,)
        if error is not None and not isinstance(error, expected):
            raise AssertionError(f"the run raised {error!r}") from error
        done = [action for action, _ in zip(self._actions, self.steps.done, strict=False)]
        if "interrupt" in done and not self._was_interrupted:
            raise AssertionError("the KeyboardInterrupt was swallowed")
        if self._has_returned and not self._probe.stopped and self._was_cut():
            raise AssertionError("the run was cut, and yet it returned")

    def _was_cut(self) -> bool:
        ends = [event for event in self._recorded if isinstance(event, AgentEnd)]
        return any(
            (isinstance(message, AssistantMessage) and message.stop_reason == "aborted")
            or (isinstance(message, ToolResultMessage) and message.content == ABORTED.content)
            for event in ends
            for message in event.messages
        )

    def _check_calls_cancelled_alone(self) -> None:
        for event in self._recorded:
            if not isinstance(event, ToolExecutionEnd) or event.tool_call_id in self._cancelled_calls:
                continue
            if event.result == error_result(f'Tool "{event.tool_name}" was cancelled'):
                raise AssertionError(f"call {event.tool_call_id!r} was cancelled, and nobody asked for it")

    def _check_log(self, name: str, log: list[AgentEvent], *, complete: bool) -> None:
        recorded = self._recorded
        if len(log) > len(recorded) or any(a is not b for a, b in zip(log, recorded, strict=False)):
            raise AssertionError(f"{name} saw other events than the recorder: {log} instead of {recorded}")
        if complete and self._is_owed_everything and len(log) < len(recorded):
            raise AssertionError(f"{name} missed the last {len(recorded) - len(log)} events: {recorded[len(log) :]}")

    async def _prompt_again(self) -> None:
        self._probe.stopped = False
        answers = ScriptedModel(["Here I am."] * _ENOUGH)
        self._probe.replace_stream_fn(answers)
        try:
            await self._agent.prompt("Are you still there?")
        except Exception as exc:
            if self._scenario.raises is None or not isinstance(exc, self._scenario.raises):
                raise AssertionError(f"the agent cannot be prompted again: {exc!r}") from exc
        if not answers.requests and self._scenario.raises is None:
            raise AssertionError("a prompt after the run did not reach the model")
        check_transcript(self._agent.messages)
        self._probe.check_queues()
        if self._is_owed_everything:
            check_events(self._recorded)
            if self._is_listened:
                self._check_log("a listener", self._listened, complete=True)
            for watcher in self._watchers:
                self._check_log(watcher.name, watcher.log, complete=not watcher.scope.cancel_called)
