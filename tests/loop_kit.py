"""What the tests of the loop, the agent and the low-level doors share: short forms of events and messages, a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import trio

from trio_agent import (
    Agent,
    AgentEnd,
    AgentEvent,
    AgentMessage,
    AgentStart,
    AssistantMessage,
    Context,
    Hooks,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    RequestDetails,
    SystemMessage,
    TextContent,
    Tool,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolResult,
    ToolResultMessage,
    TurnDecision,
    TurnDetails,
    TurnEnd,
    Usage,
    UserMessage,
    tool,
)
from trio_agent.lowlevel import LoopConfig, run_agent_loop
from trio_agent.testing import ScriptedModel, check_transcript


def user(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def assistant(*content: Any, stop_reason: Any = "stop") -> AssistantMessage:
    template = ScriptedModel().model
    return AssistantMessage(
        content=tuple([TextContent(text=block) if isinstance(block, str) else block for block in content]),
        api=template.api,
        provider=template.provider,
        model=template.id,
        usage=Usage.zero(),
        stop_reason=stop_reason,
        timestamp=1,
    )


def result(call_id: str, text: str, *, name: str = "work") -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id, tool_name=name, content=(TextContent(text=text),), is_error=False, timestamp=1
    )


def text_of(message: Any) -> str:
    content = message.content
    return content if isinstance(content, str) else "".join([b.text for b in content if isinstance(b, TextContent)])


def short(message: AgentMessage) -> str:
    """One message as a line: who, what, which calls."""
    match message:
        case UserMessage():
            return f"user: {text_of(message)}"
        case AssistantMessage():
            calls = " ".join([f"{call.name}({call.id})" for call in message.tool_calls])
            return f"assistant[{message.stop_reason}]: {' '.join(part for part in (message.text, calls) if part)}"
        case ToolResultMessage():
            return f"{'error' if message.is_error else 'result'} {message.tool_call_id}: {message.text}"
        case SystemMessage():
            changes = [f"+{d.name}" for d in message.tools_added or ()]
            changes += [f"-{d.name}" for d in message.tools_removed or ()]
            return f"system: {' '.join([text_of(message), *changes]).strip()}"
        case _:
            return type(message).__name__


def shorts(messages: Iterable[AgentMessage]) -> list[str]:
    return [short(message) for message in messages]


def outline(events: Iterable[AgentEvent]) -> list[str]:
    """Events as lines, without the updates of answers."""
    return [_line(event) for event in events if not isinstance(event, MessageUpdate)]


def _line(event: AgentEvent) -> str:
    match event:
        case MessageStart(message=message):
            return "> assistant" if isinstance(message, AssistantMessage) else f"> {short(message)}"
        case MessageEnd(message=message):
            return f"< {short(message)}"
        case ToolExecutionUpdate(tool_call_id=call_id, partial_result=partial):
            return f"update {call_id}: {text_of(partial)}"
        case ToolExecutionStart() | ToolExecutionEnd():
            return f"{'start' if isinstance(event, ToolExecutionStart) else 'end'} {event.tool_call_id}"
        case TurnEnd(message=answer, tool_results=results):
            return f"turn_end {None if answer is None else answer.stop_reason} {len(results)}"
        case AgentEnd(messages=messages):
            return f"agent_end {len(messages)}"
        case _:
            return "agent_start" if isinstance(event, AgentStart) else "turn_start"


@dataclass
class Seen:
    """What a run of the low-level loop has shown.

    Attributes:
        events: in order.
        messages: that it added.
        scripted: the model that was asked.
    """

    events: list[AgentEvent]
    messages: list[AgentMessage]
    scripted: ScriptedModel

    @property
    def outline(self) -> list[str]:
        return outline(self.events)

    @property
    def transcript(self) -> list[str]:
        return shorts(self.messages)

    @property
    def requests(self) -> list[list[str]]:
        """The messages of each request, without system messages."""
        return [
            [short(message) for message in request.messages if not isinstance(message, SystemMessage)]
            for request in self.scripted.requests
        ]


async def play(
    answers: Iterable[Any],
    *,
    tools: Sequence[Tool] = (),
    hooks: Hooks = Hooks(),  # noqa: B008
    prompts: Sequence[AgentMessage] = (),
    context: Context | None = None,
    **settings: Any,
) -> Seen:
    """Run the loop to its end with a script that it must use up, and check what it leaves."""
    scripted = ScriptedModel(answers)
    events: list[AgentEvent] = []
    messages = await run_agent_loop(
        prompts or [user("go")],
        context or Context((), tuple(tools)),
        LoopConfig(model=scripted.model, hooks=hooks, **settings),
        events.append,
        scripted,
    )
    scripted.assert_exhausted()
    check_transcript(messages)
    return Seen(events, messages, scripted)


def plain_tool(name: str, value: object = "ok", **options: Any) -> Tool:
    """A tool without arguments that gives back the value, or raises it."""

    async def execute(_arguments: dict[str, Any], _ctx: object) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return Tool(name=name, parameters={"type": "object", "properties": {}}, execute=execute, **options)


def done(text: str = "ok") -> ToolResult:
    """A result that says that no further request is needed."""
    return ToolResult(text, terminate=True)


def polls(
    calls: list[str], *, steering: dict[int, str] | None = None, follow_ups: dict[int, str] | None = None
) -> Hooks:
    """Hooks that note every poll; at the poll of a given number (from 1) a message is there."""
    counts = {"steering": 0, "follow-ups": 0}

    async def poll(kind: str, at: dict[int, str]) -> Sequence[AgentMessage]:
        counts[kind] += 1
        calls.append(kind)
        text = at.get(counts[kind])
        return () if text is None else [user(text)]

    async def finish_turn(_details: TurnDetails) -> None:
        calls.append("finish_turn")

    async def should_stop_after_turn(_details: TurnDetails) -> bool:
        calls.append("should_stop")
        return False

    async def prepare_next_turn(_details: TurnDetails) -> None:
        calls.append("prepare_next_turn")

    async def prepare_request(_details: RequestDetails) -> None:
        calls.append("prepare_request")

    return Hooks(
        get_steering_messages=lambda: poll("steering", steering or {}),
        get_follow_up_messages=lambda: poll("follow-ups", follow_ups or {}),
        finish_turn=finish_turn,
        should_stop_after_turn=should_stop_after_turn,
        prepare_next_turn=prepare_next_turn,
        prepare_request=prepare_request,
    )


def deciding(*decisions: Any) -> Hooks:
    """Hooks whose ``finish_turn`` decides so, turn by turn."""
    left = list(decisions)

    async def finish_turn(_details: TurnDetails) -> TurnDecision:
        decision: TurnDecision = left.pop(0)
        return decision

    return Hooks(finish_turn=finish_turn)


def scripted_agent(*answers: Any, **settings: Any) -> tuple[Agent, ScriptedModel]:
    scripted = ScriptedModel(answers)
    return Agent(scripted.model, stream_fn=scripted, **settings), scripted


def spoken(agent: Agent) -> list[str]:
    return [short(message) for message in agent.messages if not isinstance(message, SystemMessage)]


# -- watching
# -----------------------------------------------------------------------------------------------------------

Body = Callable[[AgentEvent], Any]


@tool
async def work(seconds: float = 1.0) -> str:
    """Take time."""
    await trio.sleep(seconds)
    return "worked"


@tool
async def never() -> str:
    """Wait for what does not come."""
    await trio.sleep_forever()
    raise AssertionError


async def watch(
    agent: Agent, body: Body, *, buffer: int = 0, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Watch until the end of a run."""
    async with agent.events(buffer) as events:
        task_status.started()
        async for event in events:
            await body(event)
            if isinstance(event, AgentEnd):
                return


def is_end_of_answer(event: AgentEvent) -> bool:
    return isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage)
