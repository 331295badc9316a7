"""Agent: a conversation, its transcript and queues, and one run at a time.

A thin, stateful wrapper. The loop below does the work and knows no agent; its messages and events become state before
anyone sees them, and go to listeners and watchers. What is left to say here is who may do what while a run is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

import trio

from trio_agent._abort import AbortHandle
from trio_agent._agent_run import ActiveRun, AgentRun
from trio_agent._agent_state import AgentSink, AgentState, AgentStatistics, RunResult
from trio_agent._delivery import Listener, Subscription
from trio_agent._errors import AgentBusyError, DeadlockError
from trio_agent._event_stream import EventStream, Place
from trio_agent._hooks import Hooks
from trio_agent._loop import Run
from trio_agent._loop_config import LoopConfig
from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
)
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent._prompts import Prompt, as_message, as_messages, with_head
from trio_agent._queues import QueueMode, Queues
from trio_agent._run_transcript import Origin, Pending
from trio_agent._stream_fn import Connected, ConnectingStreamFn, StreamFn, as_model, get_default_stream_fn
from trio_agent._tool_batch import ToolExecutionMode
from trio_agent._tools import Tool
from trio_agent._toolset import AnyTool, Toolset, collect_tools
from trio_agent._transcript import Context, baseline, check_can_continue, last_spoken, replay

__all__ = ["Agent"]

_THREADS = 40


class Agent:
    """A conversation with a model that may call tools.

    Belongs to one Trio run, and is driven from its thread. Holds no task, socket or thread while no run is on, except
    that used as ``async with Agent(...) as agent`` it keeps its tool sets and its connections to models open from run
    to run; otherwise they are opened for each run.

    Args:
        model: who is asked; a name such as ``"anthropic/claude-sonnet-4-5"`` is looked up among the providers.
        system_prompt: leads the transcript, unless ``messages`` begin with a system message.
        tools: that the model may call: tools, tool sets, or functions to make tools of.
        messages: an earlier transcript to go on with.
        thinking_level: that the model is asked for.
        options: of every request.
        hooks: that runs ask.
        stream_fn: asks the model; ``None`` for the default one.
        tool_execution: ``sequential`` runs the calls of an answer one by one.
        limiter: how many tools may work at once; may be shared between agents. ``None`` for no limit.
        tool_timeout: seconds for tools that have no timeout of their own.
        max_turns: a run ends after this many turns.
        steering_mode: whether steering messages are taken ``one-at-a-time`` or ``all`` at once.
        follow_up_mode: the same for follow-ups.
        closing_grace: seconds for the closing events of a run that is cancelled from outside; 0 sends none.

    Raises:
        ValueError: a bound is not positive, or a mode or a model's provider is unknown.
        ToolDefinitionError: two tools have the same name, or something is no tool.

    ``model``, ``thinking_level``, ``tools``, ``options``, ``hooks`` and ``tool_execution`` can be set at any time and
    count from the next run on; ``steering_mode`` and ``follow_up_mode`` count at once; ``messages`` can be set while no
    run is on.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        system_prompt: str = "",
        tools: Sequence[AnyTool] = (),
        messages: Sequence[AgentMessage] = (),
        thinking_level: ThinkingLevel = "off",
        options: StreamOptions = StreamOptions(),  # noqa: B008
        hooks: Hooks = Hooks(),  # noqa: B008
        stream_fn: StreamFn | None = None,
        tool_execution: ToolExecutionMode = "parallel",
        limiter: trio.CapacityLimiter | None = None,
        tool_timeout: float | None = None,
        max_turns: int | None = None,
        steering_mode: QueueMode = "one-at-a-time",
        follow_up_mode: QueueMode = "one-at-a-time",
        closing_grace: float = 1.0,
    ) -> None:
        config = LoopConfig(
            model=as_model(model),
            thinking_level=thinking_level,
            options=options,
            hooks=hooks,
            tool_execution=tool_execution,
            limiter=limiter,
            tool_timeout=tool_timeout,
            max_turns=max_turns,
            closing_grace=closing_grace,
        )
        self._toolsets = _toolsets(tools)
        self._resources: AsyncExitStack | None = None
        self._thread_limiter: trio.CapacityLimiter | None = None
        self._queues = Queues(steering_mode, follow_up_mode)
        self._stream_fn = stream_fn
        self._connected: Connected | None = None
        collected = collect_tools(tools)
        self._state = AgentState(config, collected, with_head(system_prompt, collected, messages))
        self._sink = AgentSink(self._state)
        self._delivery = self._sink.delivery
        self._active: ActiveRun | None = None

    async def __aenter__(self) -> Self:
        if self._resources is not None:
            raise RuntimeError("the agent has been entered already")
        async with AsyncExitStack() as resources:
            await self._open_toolsets(resources)
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        resources, self._resources, self._connected = self._resources, None, None
        if resources is None:
            return None
        return await resources.__aexit__(exc_type, exc, traceback)  # noqa: ASYNC102  # what a tool set closes bounds itself

    async def _open_toolsets(self, resources: AsyncExitStack) -> None:
        for toolset in self._toolsets:
            if not toolset.is_open:
                await resources.enter_async_context(toolset)

    # -- settings ----------------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """Who is asked."""
        return self._state._config.model

    @model.setter
    def model(self, model: Model | str) -> None:
        self._state._config = replace(self._state._config, model=as_model(model))

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The level the model is asked for."""
        return self._state._config.thinking_level

    @thinking_level.setter
    def thinking_level(self, level: ThinkingLevel) -> None:
        self._state._config = replace(self._state._config, thinking_level=level)

    @property
    def options(self) -> StreamOptions:
        """Of every request."""
        return self._state._config.options

    @options.setter
    def options(self, options: StreamOptions) -> None:
        self._state._config = replace(self._state._config, options=options)

    @property
    def hooks(self) -> Hooks:
        """What runs ask."""
        return self._state._config.hooks

    @hooks.setter
    def hooks(self, hooks: Hooks) -> None:
        self._state._config = replace(self._state._config, hooks=hooks)

    @property
    def tool_execution(self) -> ToolExecutionMode:
        """Whether the calls of an answer run together."""
        return self._state._config.tool_execution

    @tool_execution.setter
    def tool_execution(self, mode: ToolExecutionMode) -> None:
        self._state._config = replace(self._state._config, tool_execution=mode)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; the next run declares the difference."""
        return self._state._tools

    @tools.setter
    def tools(self, tools: Sequence[AnyTool]) -> None:
        self._state._tools = collect_tools(tools)
        self._toolsets = _toolsets(tools)

    @property
    def steering_mode(self) -> QueueMode:
        """How many steering messages are taken at once."""
        return self._queues.steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._queues.steering.mode = mode

    @property
    def follow_up_mode(self) -> QueueMode:
        """How many follow-ups are taken at once."""
        return self._queues.follow_up.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._queues.follow_up.mode = mode

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The transcript: a snapshot that does not grow. Setting it while a run is on raises ``AgentBusyError``."""
        return self._state.messages

    @messages.setter
    def messages(self, messages: Sequence[AgentMessage]) -> None:
        if self._active is not None:
            raise AgentBusyError(
                "the transcript cannot be set while a run is on: steer() brings a message in, wait_idle() waits"
            )
        self._sink.set_messages(messages)

    @property
    def state(self) -> AgentState:
        """A read-only view of the agent; always current."""
        return self._state

    @property
    def is_running(self) -> bool:
        """Whether a run is on; it is until its last handler has returned."""
        return self._active is not None

    # -- queues ------------------------------------------------------------------------------------------------------

    def steer(self, message: str | AgentMessage) -> None:
        """Queue a message for the next opportunity: before the next request of this run, or of the next one.

        Never blocks, no checkpoint, may be called from handlers, hooks and tools.
        """
        self._queues.steering.append(as_message(message))

    def follow_up(self, message: str | AgentMessage) -> None:
        """Queue a message for when a run has nothing else to do. Never blocks, no checkpoint."""
        self._queues.follow_up.append(as_message(message))

    def clear_steering(self) -> None:
        """Drop the steering messages that wait."""
        self._queues.steering.clear()

    def clear_follow_ups(self) -> None:
        """Drop the follow-ups that wait."""
        self._queues.follow_up.clear()

    def queued(self) -> tuple[AgentMessage, ...]:
        """What would be taken next: steering before follow-ups, as many as the mode says."""
        return self._queues.peek()

    @property
    def queued_steering(self) -> tuple[AgentMessage, ...]:
        """All steering messages that wait."""
        return self._queues.steering.waiting

    @property
    def queued_follow_ups(self) -> tuple[AgentMessage, ...]:
        """All follow-ups that wait."""
        return self._queues.follow_up.waiting

    # -- watching ----------------------------------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> Subscription:
        """Register a listener, from the next event on, until its subscription is closed.

        It is awaited (or just called, if it is a plain function) in the order of registration, before any watcher; the
        run stands until it has returned. What it raises ends the run and comes out of ``prompt()``, after the
        transcript was closed; it then gets nothing more of that run.
        """
        return self._delivery.add_listener(listener)

    def events(self, buffer: int = 0) -> EventStream:
        """Events for a further watcher, in a task of its own; may be opened before a run and spans runs.

        Args:
            buffer: how many events may wait before the run does. With 0 the watcher is a barrier, like a listener.
        """
        if buffer < 0:
            raise ValueError(f"buffer must be 0 or more events, not {buffer!r}")
        return EventStream(self._delivery, buffer)

    # -- runs --------------------------------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, *, images: Sequence[ImageContent] = ()) -> RunResult:
        """Run with a prompt, to the end. A checkpoint.

        Args:
            prompt: a text, a message, or messages in order.
            images: go after the text, in the same message.

        Returns:
            What the run did. A failed or aborted answer is a result too: see ``RunResult.raise_for_error``.

        Raises:
            AgentBusyError: a run is on.
            ValueError: the prompt is empty, or images come with messages.
            Exception: of a listener or hook, bare; the transcript is closed.
            Cancelled: the transcript is closed, and ``closing_grace`` bounded the closing events.
        """
        return await self._run(as_messages(prompt, images))

    async def continue_(self) -> RunResult:
        """Go on without a prompt: answer the tail of the transcript, or else what is queued. A checkpoint.

        If the last message (system messages aside) is the assistant's, the next steering messages, else the next
        follow-ups are the prompt.

        Raises:
            TranscriptError: there is nothing to answer.
            AgentBusyError: a run is on.
        """
        return await self._run(None)

    def run(self, prompt: Prompt | None = None, *, images: Sequence[ImageContent] = ()) -> AgentRun:
        """A run to watch: ``async with agent.run("...") as run: async for event in run: ...``.

        Args:
            prompt: as for :meth:`prompt`; ``None`` goes on as :meth:`continue_` does.
            images: go after the text.

        Raises:
            ValueError: the prompt is empty, or images come with messages.
        """
        prompts = None if prompt is None else as_messages(prompt, images)
        return AgentRun(lambda handle: self._claim(prompts, handle, watched=True), self._drive, self.events())

    def abort(self) -> None:
        """Stop the run in order; nothing if none is on. Never blocks, no checkpoint, may be called from anywhere.

        The run closes its transcript, delivers what is owed, and returns: a partial answer is kept with the stop reason
        ``aborted``, and every call of the last complete answer gets a result. Queued messages stay queued.
        """
        if self._active is not None:
            self._active.handle.abort()

    def reset(self) -> None:
        """Forget the conversation: messages, errors, queues. Prompt and declarations stay as one system message.

        Raises:
            AgentBusyError: a run is on.
        """
        if self._active is not None:
            raise AgentBusyError("the agent cannot be reset while a run is on: call abort() and wait_idle() first")
        head = baseline(replay(self.messages), 0)
        self._sink.set_messages([] if head is None else [head])
        self._sink.forget_error()
        self._queues.clear()

    async def wait_idle(self) -> None:
        """Wait until no run is on; at once if none is. A checkpoint.

        Raises:
            DeadlockError: called from inside a handler, hook or tool that the run itself waits for.
        """
        active = self._active
        if active is None:
            await trio.lowlevel.checkpoint()
            return
        self._check_not_waited_for(active, "wait_idle()")
        await active.over.wait()

    def statistics(self) -> AgentStatistics:
        """What the agent is doing at this moment."""
        delivery = self._delivery
        running, waiting = (0, 0) if self._active is None else self._active.run.calls_at_work()
        return AgentStatistics(
            running=running,
            waiting_for_slot=waiting,
            queued=len(self.queued_steering) + len(self.queued_follow_ups),
            events_waiting=delivery.events_waiting,
            oldest_wait=delivery.waiting_for,
            delivering=delivery.current,
        )

    def __repr__(self) -> str:
        return f"Agent(model={self.model.id!r}, messages={len(self.messages)}, is_running={self.is_running})"

    # -- inside ------------------------------------------------------------------------------------------------------

    def _check_not_waited_for(self, active: ActiveRun, what: str) -> None:
        if active.place is not None and active.place.is_waited_for_by_current_task():
            raise DeadlockError(
                f"{what} would wait for ever: it is called from a listener, hook or tool that the run itself waits for "
                f"(task {active.place.name!r}); steer() and follow_up() queue messages without waiting"
            )
        self._delivery.check_not_waited_for(what)

    def _claim(self, prompts: list[AgentMessage] | None, handle: AbortHandle, *, watched: bool) -> ActiveRun:
        if self._active is not None:
            raise AgentBusyError("the agent is running: steer() or follow_up() queue a message, wait_idle() waits")
        hooks = self._state._config.hooks
        if hooks.get_steering_messages is not None or hooks.get_follow_up_messages is not None:
            raise ValueError(
                "get_steering_messages and get_follow_up_messages are for loops without an agent; "
                "call steer() and follow_up()"
            )
        stream_fn = self._stream_fn or get_default_stream_fn()
        connected = self._connected_for(stream_fn)
        run = Run(
            Context(self.messages, self._state._tools),
            self._state._config,
            self._sink,
            connected or stream_fn,
            handle,
            inbox=self._queues,
            cancellable_calls=watched,
            thread_limiter=self._get_thread_limiter,
        )
        if prompts is None and not (self._answer_is_last() and self.queued()):
            check_can_continue(self.messages)
        self._delivery.unmute()
        self._sink.begin(run)
        self._active = ActiveRun(run, prompts, handle, connected)
        return self._active

    def _connected_for(self, stream_fn: StreamFn) -> Connected | None:
        if self._connected is not None and self._connected.stream_fn is stream_fn:
            return self._connected
        return Connected(stream_fn) if isinstance(stream_fn, ConnectingStreamFn) else None

    async def _connect(self, connected: Connected, resources: AsyncExitStack) -> None:
        # Connections that an entered agent has once made are kept for its next runs.
        if connected is self._connected:
            return
        await (self._resources or resources).enter_async_context(connected)
        if self._resources is not None:
            self._connected = connected

    def _get_thread_limiter(self) -> trio.CapacityLimiter:
        # Never Trio's default one: threads that were abandoned would keep the application from getting its own.
        if self._thread_limiter is None:
            self._thread_limiter = trio.CapacityLimiter(_THREADS)
        return self._thread_limiter

    def _answer_is_last(self) -> bool:
        return isinstance(last_spoken(self.messages), AssistantMessage)

    def _continuation(self) -> list[Pending]:
        if self._answer_is_last():
            origin: Origin = "steering"
            queued = self._queues.take_steering()
            if not queued:
                origin = "follow_up"
                queued = self._queues.take_follow_ups()
            if queued:
                return [Pending(message, origin, message) for message in queued]
        check_can_continue(self.messages)
        return []

    def _pending(self, active: ActiveRun) -> list[Pending]:
        prompts = active.prompts
        return self._continuation() if prompts is None else [Pending(message) for message in prompts]

    async def _run(self, prompts: list[AgentMessage] | None) -> RunResult:
        await trio.lowlevel.checkpoint()
        return await self._drive(self._claim(prompts, AbortHandle(), watched=False))

    async def _drive(self, active: ActiveRun) -> RunResult:
        active.place = Place.here()
        try:
            if self._toolsets or active.connected is not None:
                async with AsyncExitStack() as resources:
                    await self._open_toolsets(resources)
                    if active.connected is not None:
                        await self._connect(active.connected, resources)
                    messages = await active.run.execute(self._pending(active))
            else:
                messages = await active.run.execute(self._pending(active))
        finally:
            self._active = None
            self._sink.end(active.run)
            active.over.set()
        return RunResult(messages=tuple(messages), turns=active.run.turns)


def _toolsets(tools: Sequence[AnyTool]) -> tuple[Toolset, ...]:
    return tuple([tool for tool in tools if isinstance(tool, Toolset)])
