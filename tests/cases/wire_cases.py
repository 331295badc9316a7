"""Cases of kind a: a body arrives, and these facts hold for the message it comes to.

``run_case`` is for one case, also of another directory; a fact that it does not know is a difference.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from trio_agent._messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from trio_agent._models import Model
from trio_agent._stream_events import AssistantMessageEvent, StreamDone, StreamError, ToolCallDelta
from trio_agent.wire import WIRE_FORMATS, is_retryable_text

__all__ = ["is_supported", "run_case"]

Case = dict[str, Any]
Facts = Mapping[str, Any]


def is_supported(case: Case) -> bool:
    """Whether it is a case of kind a for a format that there is a decoder for."""
    return case["kind"] == "a" and case["input"]["api"] in WIRE_FORMATS


def run_case(case: Case) -> list[str]:
    """Run one case of kind a.

    Returns:
        The differences, one line each.
    """
    given, expected = case["input"], dict(case["expect"])
    body = given["sse"].encode()
    reads = [base64.b64decode(chunk) for chunk in given.get("chunks_b64") or []]
    lines = _check(given["api"], body, reads or [body], expected, case["id"])
    for name, facts in expected.get("variants", {}).items():
        variant = given["variants"][name].encode()
        lines += _check(given["api"], variant, [variant], facts, f"{case['id']} {name}")
    return lines


def _check(api: str, body: bytes, reads: list[bytes], facts: Facts, name: str) -> list[str]:
    lines: list[str] = []
    events = _decode(api, reads)
    for cut, pieces in (("whole", [body]), ("byte by byte", [body[i : i + 1] for i in range(len(body))])):
        if _decode(api, pieces) != events:
            lines.append(f"{name}: other events when it arrives {cut}")
    last = events[-1]
    if not isinstance(last, (StreamDone, StreamError)) or last.message is None:
        return [*lines, f"{name}: the last event is {last!r}"]
    for fact, value in facts.items():
        if fact == "variants":
            continue
        check = FACTS.get(fact)
        got = f"no such fact is known: {fact}" if check is None else check(last.message, value, events)
        if got:
            lines.append(f"{name}: {fact}: {got}")
    return lines


def _decode(api: str, reads: Iterable[bytes]) -> list[AssistantMessageEvent]:
    decoder = WIRE_FORMATS[api].decoder(Model(id="m-1", api=api, provider="case"), timestamp=0)
    events = [event for read in reads for event in decoder.feed(read)]
    return events + decoder.finish()


Check = Callable[[AssistantMessage, Any, list[AssistantMessageEvent]], "str | None"]


def _equal(read: Callable[[AssistantMessage], object]) -> Check:
    def check(message: AssistantMessage, value: object, _: object) -> str | None:
        got = read(message)
        return None if got == value else f"got {got!r}, expected {value!r}"

    return check


def _thinking(message: AssistantMessage) -> str:
    return "".join(block.thinking for block in message.content if isinstance(block, ThinkingContent))


def _text_signature(message: AssistantMessage) -> str | None:
    return next((block.text_signature for block in message.content if isinstance(block, TextContent)), None)


def _has_unique_ids(message: AssistantMessage) -> bool:
    ids = [call.id for call in message.tool_calls]
    return all(ids) and len(set(ids)) == len(ids)


def _is_call(call: ToolCall, facts: Facts) -> bool:
    got = {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "signature": call.thought_signature,
    }
    return all(got[fact] == value for fact, value in facts.items())


def _calls(message: AssistantMessage, value: list[Facts], _: object) -> str | None:
    calls = message.tool_calls
    same = len(calls) == len(value) and all(_is_call(call, facts) for call, facts in zip(calls, value, strict=True))
    return None if same and _has_unique_ids(message) else f"got {calls!r}, expected {value!r}"


def _valid_calls(message: AssistantMessage, value: list[Facts], _: object) -> str | None:
    calls = [call for call in message.tool_calls if call.arguments_error is None]
    same = len(calls) == len(value) and all(_is_call(call, facts) for call, facts in zip(calls, value, strict=True))
    return None if same else f"got {calls!r}, expected {value!r}"


def _executed(message: AssistantMessage, value: list[str], _: object) -> str | None:
    # The loop runs the sound calls of answers that ended well; calls of all others get an error result, or none.
    runs = message.stop_reason in ("stop", "toolUse")
    executed = [call.name for call in message.tool_calls if runs and call.arguments_error is None]
    return None if executed == value else f"{executed!r} would be run, expected {value!r}"


def _usage(message: AssistantMessage, value: Facts, _: object) -> str | None:
    usage = message.usage
    got = {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "total": usage.total_tokens,
        "reasoning": usage.reasoning,
    }
    wrong = {name: got.get(name) for name, count in value.items() if got.get(name) != count}
    return f"got {wrong!r}, expected {value!r}" if wrong else None


def _error_contains(message: AssistantMessage, value: str | list[str], _: object) -> str | None:
    text = (message.error_message or "").lower()
    missing = [part for part in ([value] if isinstance(value, str) else value) if part.lower() not in text]
    return f"{message.error_message!r} has no {missing!r}" if missing else None


def _retryable(message: AssistantMessage, value: bool, _: object) -> str | None:
    got = message.stop_reason == "error" and is_retryable_text(message.error_message or "")
    return None if got == value else f"got {got} for {message.error_message!r}"


def _stop_reason_in(message: AssistantMessage, value: list[str], _: object) -> str | None:
    return None if message.stop_reason in value else f"got {message.stop_reason!r}"


def _no_replacement_char(message: AssistantMessage, value: bool, events: list[AssistantMessageEvent]) -> str | None:
    text = json.dumps([message.text, _thinking(message), [call.arguments for call in message.tool_calls]])
    deltas = json.dumps([getattr(event, "delta", "") for event in events], ensure_ascii=False)
    clean = "\\ufffd" not in text and "\ufffd" not in deltas and not any("\ud800" <= c <= "\udfff" for c in deltas)
    return None if clean == value else f"text {text}, deltas {deltas!a}"


def _update_events(message: AssistantMessage, value: int, events: list[AssistantMessageEvent]) -> str | None:
    count = sum(isinstance(event, ToolCallDelta) for event in events)
    return None if count >= value else f"got {count}, expected at least {value}"


FACTS: Final[Mapping[str, Check]] = {
    "text": _equal(lambda message: message.text),
    "thinking": _equal(_thinking),
    "text_signature": _equal(_text_signature),
    "stop_reason": _equal(lambda message: message.stop_reason),
    "stop_reason_in": _stop_reason_in,
    "tool_calls": _calls,
    "tool_calls_count": _equal(lambda message: len(message.tool_calls)),
    "tool_calls_valid": _valid_calls,
    "tool_calls_unparsable_ids": _equal(lambda message: [c.id for c in message.tool_calls if c.arguments_error]),
    "tool_calls_executed": _executed,
    "tool_call_ids_unique": _equal(_has_unique_ids),
    "toolcall_update_events_min": _update_events,
    "usage": _usage,
    "error_contains": _error_contains,
    "retryable": _retryable,
    "no_replacement_char": _no_replacement_char,
    # A loop goes on for calls, not for a label.
    "must_not_loop": _equal(lambda message: not message.tool_calls or message.stop_reason == "error"),
}
