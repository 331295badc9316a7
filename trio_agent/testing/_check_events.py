"""check_events: whether a list of events tells a story that a run can have."""

from __future__ import annotations

from collections.abc import Sequence

from trio_agent._agent_events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from trio_agent._messages import AgentMessage, AssistantMessage, ToolResultMessage
from trio_agent._transcript import text_content

__all__ = ["check_events"]


def check_events(events: Sequence[AgentEvent], *, complete: bool = True) -> None:
    """Check that events are well nested, in the order of a run, and that the closing ones say what the others did.

    Runs, turns and messages open and close in pairs. A turn has messages that go in, then at most one answer, then the
    answer's calls and one result for each. A call starts once, in source order, ends once, and reports only in between;
    its result comes after its end, and is the one that the end told of.

    Args:
        events: of one run, or of several in a row.
        complete: everything opened must be closed at the end; else the list may stop anywhere.

    Raises:
        AssertionError: the story is impossible; the text says where and why.
    """
    story = _Story()
    for index, event in enumerate(events):
        try:
            story.tell(event)
        except AssertionError as exc:
            raise AssertionError(f"event {index} ({type(event).__name__}): {exc}") from None
    if complete and story.running:
        raise AssertionError(f"the events end in the middle of {story.place}")


class _Story:
    def __init__(self) -> None:
        self.running = False
        self._messages: list[AgentMessage] = []
        self._reset_turn(in_turn=False)

    def _reset_turn(self, *, in_turn: bool) -> None:
        self._in_turn = in_turn
        self._open: AgentMessage | None = None
        self._answer: AssistantMessage | None = None
        self._calls: list[str] = []
        self._begun: dict[str, bool] = {}  # whether a call that has started is still running
        self._ends: dict[str, ToolExecutionEnd] = {}
        self._results: list[ToolResultMessage] = []

    @property
    def place(self) -> str:
        """What is open."""
        running = [call_id for call_id, is_running in self._begun.items() if is_running]
        if self._open is not None:
            return f"a message ({type(self._open).__name__})"
        if running:
            return f"the calls {running}"
        return "a turn" if self._in_turn else "a run"

    def tell(self, event: AgentEvent) -> None:
        """Go on with an event."""
        if isinstance(event, AgentStart):
            _require(not self.running, "the run has already begun")
            self.running = True
            self._messages = []
            return
        _require(self.running, "outside of a run")
        match event:
            case AgentEnd():
                _require(not self._in_turn, f"inside {self.place}")
                _require(list(event.messages) == self._messages, "its messages are not those that the run has added")
                self.running = False
            case TurnStart():
                _require(not self._in_turn, f"inside {self.place}")
                self._reset_turn(in_turn=True)
            case _:
                _require(self._in_turn, "outside of a turn")
                self._tell_in_turn(event)

    def _tell_in_turn(self, event: AgentEvent) -> None:
        match event:
            case TurnEnd():
                self._end_turn(event)
            case MessageStart():
                self._start_message(event.message)
            case MessageUpdate():
                _require(isinstance(self._open, AssistantMessage), "no answer is open")
            case MessageEnd():
                self._end_message(event.message)
            case ToolExecutionStart():
                self._start_call(event.tool_call_id)
            case ToolExecutionUpdate():
                _require(self._begun.get(event.tool_call_id) is True, f"call {event.tool_call_id!r} is not running")
            case ToolExecutionEnd():
                _require(self._begun.get(event.tool_call_id) is True, f"call {event.tool_call_id!r} is not running")
                self._begun[event.tool_call_id] = False
                self._ends[event.tool_call_id] = event
            case _:
                raise AssertionError("unknown")

    def _start_message(self, message: AgentMessage) -> None:
        _require(self._open is None, f"inside {self.place}")
        if isinstance(message, ToolResultMessage):
            _require(len(self._results) < len(self._calls), "a result for which there is no call")
            expected = self._calls[len(self._results)]
            _require(message.tool_call_id == expected, f"the next result must be that of call {expected!r}")
            _require(self._begun.get(expected) is not True, f"call {expected!r} has not ended")
            self._check_result(message)
        else:
            _require(self._answer is None, "the answer of the turn was already there")
        self._open = message

    def _check_result(self, message: ToolResultMessage) -> None:
        end = self._ends.get(message.tool_call_id)
        if end is not None:
            content = end.result.content
            same = message.content == (text_content(content) if isinstance(content, str) else content)
            _require(
                same and message.is_error == end.is_error, f"call {end.tool_call_id!r} has ended with another result"
            )

    def _end_message(self, message: AgentMessage) -> None:
        opened, self._open = self._open, None
        _require(opened is not None, "no message is open")
        _require(type(opened) is type(message), f"the open message is of type {type(opened).__name__}")
        self._messages.append(message)
        if isinstance(message, AssistantMessage):
            self._answer = message
            if message.stop_reason not in {"error", "aborted"}:
                self._calls = [call.id for call in message.tool_calls]
            return
        _require(opened == message, "it is not the message that was opened")
        if isinstance(message, ToolResultMessage):
            self._results.append(message)

    def _start_call(self, call_id: str) -> None:
        _require(self._open is None, f"inside {self.place}")
        _require(call_id in self._calls, f"the answer has no call {call_id!r}, or is not there yet")
        _require(call_id not in self._begun, f"call {call_id!r} has already started")
        index = self._calls.index(call_id)
        _require(self._calls[:index] == list(self._begun), "calls must start in source order")
        self._begun[call_id] = True

    def _end_turn(self, event: TurnEnd) -> None:
        _require(self._open is None, f"inside {self.place}")
        _require(not any(self._begun.values()), f"inside {self.place}")
        _require(event.message is self._answer or event.message == self._answer, "it is not about the turn's answer")
        _require(list(event.tool_results) == self._results, "its results are not those of the turn")
        missing = self._calls[len(self._results) :]
        _require(not missing, f"calls without a result: {missing}")
        self._in_turn = False


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)
