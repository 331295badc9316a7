"""What a person sees, from events alone."""

from trio_agent import (
    AgentEvent,
    AssistantMessage,
    JsonObject,
    MessageEnd,
    MessageUpdate,
    TextContent,
    TextDelta,
    ToolCall,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolResult,
    TurnEnd,
    Usage,
)
from trio_agent._demo._terminal import TerminalView


def shown(*events: AgentEvent, columns: int | None = None) -> str:
    written: list[str] = []
    view = TerminalView(written.append, columns=columns)
    for event in events:
        view.handle(event)
    view.close()
    return "".join(written)


def screen(text: str) -> str:
    """What a terminal shows at the end: a carriage return with an erased line starts that line again."""
    return "\n".join(line.rpartition("\r\x1b[2K")[2] for line in text.split("\n"))


def delta(text: str) -> MessageUpdate:
    return MessageUpdate(assistant_message_event=TextDelta(content_index=0, delta=text))


def answer(*calls: ToolCall, error: str | None = None) -> MessageEnd:
    return MessageEnd(
        message=AssistantMessage(
            content=calls,
            api="test",
            provider="test",
            model="test",
            usage=Usage.zero(),
            stop_reason="error" if error else "toolUse" if calls else "stop",
            timestamp=0,
            error_message=error,
        )
    )


def call(name: str, number: int = 1, **arguments: object) -> ToolCall:
    return ToolCall(id=f"{name}-{number}", name=name, arguments=arguments)


def start(call: ToolCall) -> ToolExecutionStart:
    return ToolExecutionStart(tool_call_id=call.id, tool_name=call.name, args=call.arguments)


def end(call: ToolCall, error: str | None = None) -> ToolExecutionEnd:
    result = ToolResult(content=(TextContent(text=error or "ok"),), is_error=error is not None)
    return ToolExecutionEnd(tool_call_id=call.id, tool_name=call.name, result=result, is_error=error is not None)


TURN_END = TurnEnd(message=None, tool_results=())
ARGUMENTS: JsonObject = {"path": "a b", "offset": 3}


def test_text_is_written_as_it_streams_and_ends_its_line() -> None:
    assert shown(delta("Hel"), delta("lo\nyou"), answer(), TURN_END) == "Hello\nyou\n"


def test_a_single_call_is_shown_with_its_arguments() -> None:
    read = call("read", **ARGUMENTS)

    events: list[AgentEvent] = [delta("I read."), answer(read), start(read), end(read), TURN_END]

    assert shown(*events) == "I read.\n  read(path='a b', offset=3): done\n"
    assert screen(shown(*events, columns=80)) == "I read.\n  read(path='a b', offset=3): done\n"


def test_many_calls_are_one_line_that_is_written_over_on_a_terminal_only() -> None:
    calls = [call("check", number) for number in range(4)]
    events: list[AgentEvent] = [answer(*calls), *map(start, calls), *map(end, calls), TURN_END]

    assert shown(*events) == "  check, 4 calls: done\n"
    on_terminal = shown(*events, columns=80)
    assert "\r\x1b[2K  check, 4 calls [############------------] 2\r" in on_terminal
    assert screen(on_terminal) == "  check, 4 calls: done\n"


def test_a_line_to_be_written_over_is_shorter_than_the_terminal() -> None:
    read = call("read", path="x" * 500)

    written = shown(answer(read), start(read), end(read), columns=40)

    assert max(len(status) for status in written.split("\r\x1b[2K")) == 39


def test_failed_calls_are_counted_and_the_first_is_explained() -> None:
    calls = [call("check", number) for number in range(3)]
    events: list[AgentEvent] = [
        answer(*calls),
        *map(start, calls),
        end(calls[0]),
        end(calls[1], "No\nsuch"),
        end(calls[2], "b"),
        TURN_END,
    ]

    assert shown(*events) == "  check, 3 calls: 2 failed: No such\n"


def test_calls_without_an_end_are_not_called_done() -> None:
    calls = [call("check", number) for number in range(3)]

    assert shown(answer(*calls), *map(start, calls), end(calls[0]), TURN_END) == "  check, 3 calls: 1 done\n"


def test_calls_to_several_tools_have_a_line_each() -> None:
    calls = [call("a"), call("b", 1), call("b", 2)]

    assert shown(answer(*calls), *map(start, calls), *map(end, calls), TURN_END) == (
        "  a(): done\n  b, 2 calls: done\n"
    )


def test_a_failed_answer_is_shown_with_its_reason_and_without_its_calls() -> None:
    cut_off = answer(call("check"), error="overloaded")

    assert shown(delta("Hal"), cut_off, TURN_END) == "Hal\n! error: overloaded\n"


def test_control_characters_of_models_and_tools_do_not_reach_the_terminal() -> None:
    read = call("read", path="\x1b[2J")
    events: list[AgentEvent] = [
        delta("a\x1b]0;title\x07b\u009bc\tz\n"),
        answer(read),
        start(read),
        end(read, "\x1b[31mred"),
        TURN_END,
    ]

    assert shown(*events) == "a]0;titlebc\tz\n  read(path='\\x1b[2J'): 1 failed: [31mred\n"


def test_a_view_that_is_closed_early_leaves_a_free_line() -> None:
    calls = [call("check", number) for number in range(2)]

    assert shown(delta("Hel")) == "Hel\n"
    assert shown(answer(*calls), start(calls[0]), columns=80).endswith("\r\x1b[2K")
