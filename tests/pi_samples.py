"""JSON as the pi coding agent writes it, by hand, one or more of each kind of value; all fields of its tables occur."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

COST: Json = {"input": 0.003, "output": 0.015, "cacheRead": 0.0003, "cacheWrite": 0.00375, "total": 0.02205}
USAGE: Json = {"input": 1000, "output": 200, "cacheRead": 10, "cacheWrite": 20, "totalTokens": 1230, "cost": COST}
FULL_USAGE: Json = {
    **USAGE,
    "cost": {**COST, "totalFromProvider": True},
    "cacheWrite1h": 5,
    "reasoning": 0,
}
ZERO_USAGE: Json = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}

BLOCKS: dict[str, Json] = {
    "text": {"type": "text", "text": "Hello"},
    "empty text": {"type": "text", "text": ""},
    "signed text": {"type": "text", "text": "Hello", "textSignature": '{"v":1,"id":"msg_1","phase":"final_answer"}'},
    "thinking": {"type": "thinking", "thinking": "Hm."},
    "signed thinking": {"type": "thinking", "thinking": "", "thinkingSignature": "c2ln", "redacted": False},
    "redacted thinking": {
        "type": "thinking",
        "thinking": "[Reasoning redacted]",
        "thinkingSignature": "ZW5j",
        "redacted": True,
    },
    "call": {"type": "toolCall", "id": "call_1|fc_1", "name": "read", "arguments": {"path": "/a", "limit": 2.5}},
    "call without arguments": {"type": "toolCall", "id": "c", "name": "now", "arguments": {}},
    "full call": {
        "type": "toolCall",
        "id": "c",
        "name": "read",
        "arguments": {},
        "argumentsError": "Unexpected end of JSON input",
        "thoughtSignature": "c2ln",
        "namespace": "files",
    },
    "image": {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
}

TOOL: Json = {"name": "read", "description": "", "parameters": {"type": "object", "properties": {}}}

ASSISTANT: Json = {
    "role": "assistant",
    "content": [BLOCKS["text"]],
    "api": "openai-completions",
    "provider": "openai",
    "model": "gpt-x",
    "usage": USAGE,
    "stopReason": "stop",
    "timestamp": 1_764_400_000_000,
}
TOOL_RESULT: Json = {
    "role": "toolResult",
    "toolCallId": "call_1|fc_1",
    "toolName": "read",
    "content": [BLOCKS["text"]],
    "isError": False,
    "timestamp": 2,
}

MESSAGES: dict[str, Json] = {
    "system": {"role": "system", "content": "", "timestamp": 0},
    "full system": {
        "role": "system",
        "content": [BLOCKS["text"]],
        "sections": {"rules": "Be kind.", "gone": None},
        "toolsAdded": [TOOL],
        "toolsRemoved": [{"name": "write"}],
        "timestamp": 0,
    },
    "user": {"role": "user", "content": "Hi", "timestamp": 1},
    "user without text": {"role": "user", "content": [], "timestamp": 1},
    "user with image": {"role": "user", "content": [BLOCKS["text"], BLOCKS["image"]], "timestamp": 1},
    "assistant": ASSISTANT,
    "empty assistant": {**ASSISTANT, "content": [], "usage": ZERO_USAGE},
    "full assistant": {
        **ASSISTANT,
        "content": [block for name, block in BLOCKS.items() if name != "image"],
        "usage": FULL_USAGE,
        "stopReason": "error",
        "responseModel": "gpt-x-2026",
        "responseId": "chatcmpl-1",
        "providerThinkingLevel": "xhigh",
        "thinkingLevel": "high",
        "diagnostics": [
            {"type": "fallback", "timestamp": 3, "error": {"name": "Error", "message": "m", "code": 1}},
            {"type": "note", "timestamp": 3, "details": None},
            {"type": "note", "timestamp": 3, "details": {"a": [1]}},
        ],
        "rawStopReason": "content_filter",
        "endTurn": False,
        "deferred": {"id": "d"},
        "errorMessage": "refused",
        "durationMs": 1234,
    },
    "tool result": TOOL_RESULT,
    "full tool result": {
        **TOOL_RESULT,
        "content": [BLOCKS["text"], BLOCKS["image"]],
        "details": {"lines": 3},
        "usage": USAGE,
        "nestedCalls": [{"name": "grep"}],
        "isError": True,
        "durationMs": 0,
    },
    "tool result with null details": {**TOOL_RESULT, "content": [], "details": None},
}
for _reason in ("length", "toolUse", "aborted", "pending", "deferred"):
    MESSAGES[f"assistant {_reason}"] = {**ASSISTANT, "stopReason": _reason}

STREAM_EVENTS: dict[str, Json] = {
    "start": {"type": "start"},
    "text start": {"type": "text_start", "contentIndex": 0},
    "text delta": {"type": "text_delta", "contentIndex": 0, "delta": "He"},
    "text end": {"type": "text_end", "contentIndex": 0, "content": "Hello"},
    "signed text end": {"type": "text_end", "contentIndex": 0, "content": "", "contentSignature": "sig"},
    "thinking start": {"type": "thinking_start", "contentIndex": 1},
    "thinking delta": {"type": "thinking_delta", "contentIndex": 1, "delta": "Hm"},
    "thinking end": {"type": "thinking_end", "contentIndex": 1, "content": "Hm."},
    "redacted thinking end": {
        "type": "thinking_end",
        "contentIndex": 1,
        "content": "[Reasoning redacted]",
        "contentSignature": "ZW5j",
        "redacted": True,
    },
    "call start": {"type": "toolcall_start", "contentIndex": 2, "id": "c", "name": "read"},
    "call start without id": {"type": "toolcall_start", "contentIndex": 2, "id": "", "name": ""},
    "call delta": {"type": "toolcall_delta", "contentIndex": 2, "delta": ""},
    "call end": {"type": "toolcall_end", "contentIndex": 2, "toolCall": BLOCKS["call"]},
    "done": {"type": "done", "reason": "toolUse", "message": {**ASSISTANT, "stopReason": "toolUse"}},
    "done without message": {"type": "done", "reason": "stop", "usage": USAGE},
    "error": {"type": "error", "reason": "aborted", "error": {**ASSISTANT, "stopReason": "aborted"}},
    "error without message": {"type": "error", "reason": "error", "errorMessage": "HTTP 500", "usage": USAGE},
}

RESULT: Json = {"content": [BLOCKS["text"]], "details": {}}
EXECUTION: Json = {"toolCallId": "c", "toolName": "read"}

AGENT_EVENTS: dict[str, Json] = {
    "agent start": {"type": "agent_start"},
    "turn start": {"type": "turn_start"},
    "turn end": {"type": "turn_end", "message": ASSISTANT, "toolResults": [TOOL_RESULT]},
    "turn end without results": {"type": "turn_end", "message": ASSISTANT, "toolResults": []},
    "turn end without message": {"type": "turn_end", "message": None, "toolResults": []},
    "agent end": {"type": "agent_end", "messages": [MESSAGES["user"], ASSISTANT]},
    "agent end of nothing": {"type": "agent_end", "messages": []},
    "execution start": {"type": "tool_execution_start", **EXECUTION, "args": {}},
    "execution update": {
        "type": "tool_execution_update",
        **EXECUTION,
        "args": {"path": "/a"},
        "partialResult": {"content": [], "details": None},
    },
    "execution end": {"type": "tool_execution_end", **EXECUTION, "result": RESULT, "isError": False},
    "full execution end": {
        "type": "tool_execution_end",
        **EXECUTION,
        "result": {
            "content": [BLOCKS["text"], BLOCKS["image"]],
            "details": [1],
            "structuredContent": None,
            "isError": True,
            "terminate": True,
            "usage": FULL_USAGE,
        },
        "isError": True,
        "durationMs": 12,
    },
}
for _name, _message in MESSAGES.items():
    AGENT_EVENTS[f"message start of {_name}"] = {"type": "message_start", "message": _message}
    AGENT_EVENTS[f"message end of {_name}"] = {"type": "message_end", "message": _message}
for _name, _event in STREAM_EVENTS.items():
    AGENT_EVENTS[f"message update by {_name}"] = {"type": "message_update", "assistantMessageEvent": _event}
