"""Reference vectors, made by running pi's own code: what it sends, says of errors, and makes of texts.

Where we differ on purpose, the reason stands here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trio_agent._messages import Message, SystemMessage, ToolDeclaration
from trio_agent._models import Model, StreamOptions
from trio_agent.wire import WIRE_FORMATS, is_overflow_text, is_retryable_text, read_error
from trio_agent.wire._ids import short_hash
from trio_agent.wire._json import finish_arguments, repair, scrub_text

from .streams import message_of

OPTION_NAMES = {
    "maxTokens": "max_tokens",
    "cacheRetention": "cache_retention",
    "sessionId": "session_id",
    "toolChoice": "tool_choice",
}

REQUEST_NOTES = {
    "accept": "we accept an event stream by name",
    "browser": "the header of the JavaScript SDK in browsers is not ours",
    "beta url": "betas travel in the header; the plain path is enough",
    "threads": "message threads, which send only what is new, are not used",
    "managed effort": "effort that changes within a conversation is not used: the effort is the request's",
    "inline tools": "tools declared within a conversation are not used, nor the placeholder that announces them",
    "cut id": "an id that is cut ends in a hash, or two of them could become one",
    "empty result": "a result without content says so: some servers refuse an empty one",
}


def cases(path: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def transcript(context: dict[str, Any]) -> Iterator[Message]:
    prompt, tools = context.get("systemPrompt") or "", context.get("tools") or []
    if prompt or tools:
        declared = tuple([msgspec.convert(tool, ToolDeclaration) for tool in tools])
        yield SystemMessage(content=prompt, timestamp=0, tools_added=declared or None)
    for message in context["messages"]:
        yield msgspec.convert(message, Message)


def differences(got: Any, wanted: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(got, dict) and isinstance(wanted, dict):
        for key in sorted(got.keys() | wanted.keys()):
            yield from differences(got.get(key), wanted.get(key), f"{path}.{key}")
    elif isinstance(got, list) and isinstance(wanted, list) and len(got) == len(wanted):
        for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
            yield from differences(a, b, f"{path}[{number}]")
    elif got != wanted:
        yield path, got, wanted


def request_note(path: str, got: Any, wanted: Any, *, managed: bool) -> str | None:
    """The note that explains a difference; ``None`` if none does."""
    if path == "headers.accept":
        return "accept"
    if path == "headers.anthropic-dangerous-direct-browser-access":
        return "browser"
    if path == "url":
        return "beta url" if wanted == f"{got}?beta=true" else None
    if path == "body.thread" or (path == "headers.anthropic-beta" and wanted == "message-threads-2026-08-12"):
        return "threads"
    if managed and path.startswith(("body.messages", "body.output_config", "body.thinking", "headers.anthropic-beta")):
        return "managed effort"
    if managed and path == "body.tools" and isinstance(wanted, list) and wanted[:-1] == got:
        return "inline tools"
    if path.endswith((".id", ".tool_use_id")) and len(wanted) == 64 and str(wanted).startswith(got[:50]):
        return "cut id"
    if path.endswith(".content") and (got, wanted) == ("(no tool output)", ""):
        return "empty result"
    return None


@pytest.mark.parametrize("api", sorted(WIRE_FORMATS))
def test_requests_are_pis_up_to_the_notes(api: str, vectors_directory: Path, report: list[str]) -> None:
    used: Counter[str] = Counter()
    unexplained: list[str] = []
    total = equal = 0
    for path in sorted((vectors_directory / "requests").glob("*.json")):
        vector = json.loads(path.read_text(encoding="utf-8"))
        if vector["model"]["api"] != api:
            continue
        model = msgspec.convert(vector["model"], Model)
        managed = bool((model.compat or {}).get("supportsMidConvoEffort"))
        for name, case in vector["cases"].items():
            options = {str(OPTION_NAMES.get(key, key)): value for key, value in case["options"].items()}
            made = WIRE_FORMATS[api].encode(
                model, list(transcript(case["context"])), StreamOptions(api_key="sk-test", **options)
            )
            got = {"url": made.url, "headers": dict(made.headers), "body": json.loads(made.content())}
            wanted = {key: case["request"][key] for key in got}
            found = [difference for key in got for difference in differences(got[key], wanted[key], key)]
            notes = {request_note(*difference, managed=managed) for difference in found}
            used.update(note for note in notes if note)
            total += 1
            equal += notes <= {"accept", "browser", "beta url"}
            unexplained += [
                f"{model.id} {name} {where}: got {ours!r}, wanted {theirs!r}"
                for where, ours, theirs in found
                if request_note(where, ours, theirs, managed=managed) is None
            ]

    report += [f"NOTE {api} {note}: {count} requests; {REQUEST_NOTES[note]}" for note, count in sorted(used.items())]
    report.append(f"requests of {api}: {total} made, {equal} equal in body, {len(unexplained)} unexplained differences")
    report += unexplained
    assert total
    assert not unexplained


def test_error_bodies_get_pis_verdicts(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "errors.json"):
        if case.get("status", 200) < 400:
            continue
        if case["api"] == "google-generative-ai" and not case["body"]:
            # NOTE: pi's Google SDK hides the status of an empty body.
            continue
        text = read_error(case["status"], case["body"].encode()).text

        assert is_overflow_text(text) == case["overflow"], case
        assert is_retryable_text(text) == case["retryable"], case


def test_errors_within_streams_get_pis_verdicts(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "errors.json"):
        if case["api"] not in WIRE_FORMATS or case.get("status") != 200:
            continue
        model = Model(id="m", api=case["api"], provider=case["provider"])

        message = message_of(model, case["body"].encode())

        assert message.stop_reason == case["stop_reason"], case
        text = message.error_message or ""
        assert is_overflow_text(text) == case["overflow"], case
        # NOTE: codes and types that pi loses are in our text, so a 502 and a server_error are worth another try;
        # a JSON error with status 200 says what is wrong, so it is not tried again blindly.
        if "502" in text or "server_error" in text:
            assert is_retryable_text(text)
        elif "error with status 200" not in text:
            assert is_retryable_text(text) == case["retryable"], case


def test_overflow_texts(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "overflow.json"):
        text = case["error_message"]
        if text.startswith("ThrottlingException:"):
            # NOTE: pi's own example of a text that is none; its test misses the prefix.
            assert not is_overflow_text(text)
            continue
        assert is_overflow_text(text) == case["overflow"], text
        assert is_overflow_text(text, provider="cerebras") == case["overflow_cerebras"], text
        assert is_retryable_text(text) == case["retryable"], text


PYTHONS_OWN = ("peer closed connection", "Server disconnected", "All connection attempts", "[Errno -2]")


def test_retryable_texts(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "retryable.json"):
        text = case["error_message"]
        # NOTE: how connections fail in Python, pi cannot know.
        assert is_retryable_text(text) == (case["retryable"] or text.startswith(PYTHONS_OWN)), text


def test_unpaired_surrogates(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "sanitize.json"):
        scrubbed = scrub_text("".join(map(chr, case["input"])))

        assert memoryview(scrubbed.encode("utf-16-le")).cast("H").tolist() == case["output"]


def test_short_hashes(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "short_hash.json"):
        assert short_hash(case["text"]) == case["hash"]


def test_json_texts(vectors_directory: Path) -> None:
    for case in cases(vectors_directory / "json.json"):
        text, final = case["text"], case["final"]
        assert repair(text) == case["repaired"], text
        arguments, error = finish_arguments(text)
        if text == "null":
            # NOTE: servers say null where they mean that there are no arguments.
            assert (arguments, error) == ({}, None)
        elif repair(text) != text:
            # NOTE: malformed text is never repaired into a call.
            assert error is not None
        else:
            assert (arguments, error is not None) == (final["arguments"], "argumentsError" in final), text
