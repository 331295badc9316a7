"""Cases of kind b that are about a history: a transcript goes out, and these facts hold for the request.

A request is read here by the rules of the server, not by ours: whatever history comes in, each call has one result
directly behind it, and nothing in the request is what a server is known to refuse.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import Message, SystemMessage, ToolDeclaration
from trio_agent._models import Model, StreamOptions
from trio_agent._tools import Tool
from trio_agent.wire import WIRE_FORMATS, WireRequest

__all__ = ["is_supported", "run_case"]

Case = dict[str, Any]
_USAGE = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0} | {
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
}
_ID = {"anthropic-messages": r"[a-zA-Z0-9_-]{1,64}", "openai-completions": r".{1,}"}


def is_supported(case: Case) -> bool:
    """Whether it is a case about requests for a format that there is an encoder for."""
    given = case["input"]
    if case["kind"] != "b":
        return False
    return given.get("target_api") in WIRE_FORMATS or "user_text_json" in given or "names" in given


def run_case(case: Case) -> list[str]:
    """Run one such case for each format.

    Returns:
        The differences, one line each.
    """
    given, expected = case["input"], case["expect"]
    lines: list[str] = []
    for api in WIRE_FORMATS:
        if "names" in given:
            found = _check_names(api, given["names"], expected)
        elif "user_text_json" in given:
            found = _check_texts(api, given)
        else:
            found = _check_history(api, given, expected)
        lines += [f"{case['id']} {api}: {line}" for line in found]
    return lines


def _model(api: str, model_id: str = "case-model") -> Model:
    return Model(id=model_id, api=api, provider="case", base_url="https://llm.example")


def _message(plain: Mapping[str, Any]) -> Message:
    names = {"tool_call_id": "toolCallId", "tool_name": "toolName", "is_error": "isError", "stop_reason": "stopReason"}
    fields: dict[str, Any] = {names.get(key, key): value for key, value in plain.items()} | {"timestamp": 1}
    if fields["role"] == "assistant":
        fields |= {"provider": "case", "usage": _USAGE}
        fields["content"] = [
            {("thinkingSignature" if key == "signature" else key): value for key, value in block.items()}
            for block in fields["content"]
        ]
    message: Message = msgspec.convert(fields, Message)
    return message


def _encode(api: str, messages: list[Message], model_id: str = "case-model") -> tuple[WireRequest, list[Any]]:
    request = WIRE_FORMATS[api].encode(_model(api, model_id), messages, StreamOptions(cache_retention="none"))
    body = json.loads(request.content().decode("utf-8"), parse_constant=_refuse)
    return request, body["messages"]


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check_history(api: str, given: Case, expected: Mapping[str, Any]) -> list[str]:
    history = [_message(plain) for plain in given["history"]]
    before = msgspec.json.encode(history)
    _, wire = _encode(api, history, given.get("target_model", "case-model"))
    calls = _calls(wire)
    texts = {call_id: (text, is_error) for call_id, text, is_error in _results(wire)}
    ids = [call_id for call_id, _ in calls]
    original = [
        block["id"] for m in given["history"] if m["role"] == "assistant" for block in m["content"] if "id" in block
    ]
    checks: dict[str, bool] = {
        "request_ok": not _faults(api, wire),
        "every_call_has_result": set(texts) == set(ids),
        "no_duplicates": len(set(ids)) == len(ids) == len(_results(wire)),
        "ids_unique": len(set(ids)) == len(ids),
        "ids_match_regex": all(re.fullmatch(_ID[api], call_id) for call_id in ids),
        "pairing_preserved": [call_id for call_id, _, _ in _results(wire)] == ids,
        "stored_history_unchanged": msgspec.json.encode(history) == before,
        "results_in_order": [text for _, text, _ in _results(wire)] == expected.get("results_in_order"),
        "synthetic_results_for": all(
            "No result" in texts[ids[original.index(call_id)]][0]
            for call_id in expected.get("synthetic_results_for", [])
        ),
        # Chat Completions has no mark for errors.
        "synthetic_is_error": api != "anthropic-messages"
        or all(error for text, error in texts.values() if "No result" in text),
        "tool_results_before_user_text": not _faults(api, wire),
        "no_unsigned_thinking_block": '"signature": ""' not in json.dumps(wire),
        "no_literal_think_tags": "<think" not in json.dumps(wire),
        "kept_signatures_subset_of": set(_signatures(wire)) <= set(expected.get("kept_signatures_subset_of", [])),
    }
    unknown = [f"no such fact is known: {fact}" for fact in expected if fact not in checks and fact != "variants"]
    return [*_faults(api, wire), *unknown, *(fact for fact in expected if not checks.get(fact, True))]


def _calls(wire: list[Any]) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []
    for message in wire:
        calls += [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", [])]
        calls += [(block["id"], block["name"]) for block in _blocks(message, "tool_use")]
    return calls


def _results(wire: list[Any]) -> list[tuple[str, str, bool]]:
    results: list[tuple[str, str, bool]] = []
    for message in wire:
        if message["role"] == "tool":
            results.append((message["tool_call_id"], message["content"], False))
        results += [(b["tool_use_id"], b["content"], b["is_error"]) for b in _blocks(message, "tool_result")]
    return results


def _signatures(wire: list[Any]) -> list[str]:
    return [block["signature"] for message in wire for block in _blocks(message, "thinking")]


def _blocks(message: Any, kind: str) -> list[Any]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block for block in content if block["type"] == kind]


def _faults(api: str, wire: list[Any]) -> list[str]:
    """What a server would refuse."""
    faults: list[str] = [] if wire else ["there are no messages"]
    expected: list[str] = []
    for number, message in enumerate(wire):
        got = [call_id for call_id, _, _ in _results([message])]
        if expected or got:
            if api == "anthropic-messages":
                if got != expected or message["content"][: len(got)] != _blocks(message, "tool_result"):
                    faults.append(f"message {number} answers {got}, the calls are {expected}")
                expected = []
            elif got == expected[:1]:
                expected = expected[1:]
            else:
                faults.append(f"message {number} answers {got}, the next calls are {expected}")
                expected = []
        expected = [call_id for call_id, _ in _calls([message])] or expected
        if message["content"] in ("", []) and message["role"] == "user" and api == "anthropic-messages":
            faults.append(f"message {number} is empty")
    return [*faults, *([f"no result for {expected}"] if expected else [])]


def _check_texts(api: str, given: Case) -> list[str]:
    text = json.loads(given["user_text_json"])
    output = base64.b64decode(given["tool_output_b64"]).decode("utf-8", "replace")
    history = [
        {"role": "user", "content": text},
        {
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "1", "name": "run", "arguments": json.loads(given["tool_args_json"])}
            ],
            "stop_reason": "toolUse",
            "api": api,
            "model": "case-model",
        },
        {
            "role": "toolResult",
            "tool_call_id": "1",
            "tool_name": "run",
            "content": [{"type": "text", "text": output}],
            "is_error": False,
        },
    ]
    _, wire = _encode(api, [_message(plain) for plain in history])
    sent = json.dumps(wire, ensure_ascii=False)
    lines = [] if not any("\ud800" <= character <= "\udfff" for character in sent) else ["a surrogate was sent"]
    return lines + ([] if "\U0001f980" in sent else ["the emoji is gone"])


def _check_names(api: str, names: list[str], expected: Mapping[str, Any]) -> list[str]:
    tools = tuple([ToolDeclaration(name=name, description="", parameters={"type": "object"}) for name in names if name])
    messages: list[Message] = [
        SystemMessage(content="", timestamp=0, tools_added=tools),
        _message({"role": "user", "content": "x"}),
    ]
    request, _ = _encode(api, messages)
    wire = [(tool.get("function") or tool)["name"] for tool in request.body["tools"]]
    lines = [
        f"{name!r} is refused" for name in wire if not re.fullmatch(expected["wire_names_match"].strip("^$"), name)
    ]
    if len(set(wire)) != len(wire):
        lines.append(f"names are not unique: {wire}")
    if [request.aliases.get(name, name) for name in wire] != [tool.name for tool in tools]:
        lines.append(f"names do not lead back: {request.aliases}")
    return lines + ([] if _is_refused_at_registration("") else ["a tool may have no name"])


def _is_refused_at_registration(name: str) -> bool:
    async def execute(arguments: dict[str, Any], context: Any) -> str:
        return ""

    try:
        Tool(name=name, description="", parameters={"type": "object"}, execute=execute)
    except ToolDefinitionError:
        return True
    return False
