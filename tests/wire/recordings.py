"""Recorded answers of real servers, and how ours differ from what an official SDK made of the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trio_agent._messages import AssistantMessage, ThinkingContent, Usage
from trio_agent._models import Model

from .streams import message_of

APIS = ("anthropic-messages", "openai-completions")
TRUSTED = frozenset({"full", "terminal", "merged", "error"})

STOP_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "toolUse",
    "content_filter": "error",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "toolUse",
    "refusal": "error",
    "pause_turn": "error",
}

NOTES = {
    "refusal": "the SDK keeps a refusal apart from the text; the user has to see it, so it is the text",
    "xai": "xAI counts reasoning beside the completion, which its own total shows; our output has all generated tokens",
}
"""Where we differ on purpose, and why."""


@dataclass(frozen=True)
class Recording:
    """One recorded body with what is expected of it."""

    api: str
    name: str
    body: bytes
    expected: dict[str, Any]

    @property
    def model(self) -> Model:
        host = self.expected.get("host") or "unknown.example"
        return Model(
            id=self.expected.get("model") or "unknown", api=self.api, provider="recorded", base_url=f"https://{host}/v1"
        )


def load(directory: Path) -> Iterator[Recording]:
    """The recordings below a directory that an oracle can be trusted for."""
    for api in APIS:
        for path in sorted((directory / api).glob("*.expected.json")):
            name = path.name.removesuffix(".expected.json")
            expected = json.loads(path.read_text(encoding="utf-8"))
            body = path.with_name(f"{name}.sse")
            if expected.get("trust") in TRUSTED and body.exists():
                yield Recording(api, name, body.read_bytes(), expected)


def compare(recording: Recording) -> tuple[list[str], list[str]]:
    """How the message we make differs from the expected one.

    Returns:
        Differences, one line each, and the names of the notes that were made use of.
    """
    expected = recording.expected
    message = message_of(recording.model, recording.body)
    notes: list[str] = []
    pairs: dict[str, tuple[Any, Any]] = {
        "text": (message.text, _text(expected, notes)),
        "thinking": (_thinking(message), expected.get("thinking") or ""),
    }
    if expected["trust"] == "error":
        pairs["stop"] = (message.stop_reason, "error")
    else:
        pairs |= {
            "calls": ([(c.id, c.name, c.arguments) for c in message.tool_calls], list(_calls(expected))),
            "stop word": (message.raw_stop_reason, expected["stop"]),
            "stop": (message.stop_reason, _stop_reason(message, expected["stop"])),
        }
        if expected.get("response_id"):
            pairs["response id"] = (message.response_id, expected["response_id"])
    if expected.get("usage"):
        reader = _anthropic_usage if recording.api == "anthropic-messages" else _chat_usage
        pairs["usage"] = (_counts(message.usage), reader(expected["usage"], notes))
    lines = [f"{what}: got {got!r}, expected {wanted!r}" for what, (got, wanted) in pairs.items() if got != wanted]
    return [f"{recording.api}/{recording.name}: {line}" for line in lines], notes


def _text(expected: dict[str, Any], notes: list[str]) -> str:
    text: str = expected.get("text") or ""
    refusal: str = expected.get("refusal") or ""
    if refusal:
        notes.append("refusal")
    return text + refusal


def _thinking(message: AssistantMessage) -> str:
    blocks = [block for block in message.content if isinstance(block, ThinkingContent) and not block.redacted]
    return "".join(block.thinking for block in blocks)


def _calls(expected: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for call in expected.get("merge_tool_calls") or expected.get("tool_calls") or []:
        arguments = call.get("arguments", call.get("input"))
        if isinstance(arguments, str):
            arguments = json.loads(arguments) if arguments.strip() else {}
        yield call["id"], call["name"], arguments or {}


def _stop_reason(message: AssistantMessage, word: str | None) -> str:
    # A stream without a closing word is cut; calls are run whatever the word.
    reason = STOP_REASONS.get(word, "error") if word else "error"
    return "toolUse" if reason == "stop" and message.tool_calls else reason


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "prompt": usage.input + usage.cache_read + usage.cache_write,
        "cached": usage.cache_read,
        "written": usage.cache_write,
        "output": usage.output,
        "reasoning": usage.reasoning or 0,
    }


def _chat_usage(usage: dict[str, Any], notes: list[str]) -> dict[str, int]:
    prompt, output = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    details = usage.get("prompt_tokens_details") or {}
    spent = usage.get("completion_tokens_details") or {}
    reasoning = spent.get("reasoning_tokens") or usage.get("reasoning_tokens") or 0
    if reasoning and usage.get("total_tokens") == prompt + output + reasoning:
        notes.append("xai")
        output += reasoning
    return {
        "prompt": prompt,
        "cached": details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0,
        "written": details.get("cache_write_tokens") or 0,
        "output": output,
        "reasoning": reasoning,
    }


def _anthropic_usage(usage: dict[str, Any], _notes: list[str]) -> dict[str, int]:
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return {
        "prompt": (usage.get("input_tokens") or 0) + cached + written,
        "cached": cached,
        "written": written,
        "output": usage.get("output_tokens") or 0,
        "reasoning": (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    }
