"""Recorded answers of many servers give what an official SDK makes of them, up to the notes in ``recordings``."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from trio_agent.wire import WIRE_FORMATS, read_error

from .recordings import APIS, NOTES, compare, load
from .streams import decode, message_of

AT_MOST_ON_PURPOSE = 0.02


def test_recordings_give_what_is_expected(recordings_directory: Path, report: list[str]) -> None:
    differences: list[str] = []
    used: Counter[str] = Counter()
    total = differing = on_purpose = 0
    for recording in load(recordings_directory):
        lines, notes = compare(recording)
        total += 1
        differing += bool(lines)
        on_purpose += bool(notes)
        used.update(notes)
        differences += lines

    report += differences
    report += [f"NOTE {note}: {count} recordings; {NOTES[note]}" for note, count in sorted(used.items())]
    report.append(
        f"recordings of {', '.join(APIS)}: {total} read, {total - differing} as expected "
        f"({on_purpose} of them with a note), {differing} different"
    )
    if not total:
        pytest.skip(f"no recordings of {' or '.join(APIS)} in {recordings_directory}")
    assert not differences
    assert on_purpose <= max(1, AT_MOST_ON_PURPOSE * total)


def test_recordings_do_not_depend_on_the_cuts(recordings_directory: Path) -> None:
    cuts = random.Random(1)  # noqa: S311
    for recording in load(recordings_directory):
        model, body = recording.model, recording.body
        whole = decode(model, body)
        places = sorted(cuts.randrange(len(body) + 1) for _ in range(10))
        pieces = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]

        assert decode(model, pieces) == whole, recording.name
        if len(body) < 5_000:
            assert decode(model, [body[i : i + 1] for i in range(len(body))]) == whole, recording.name


def test_local_servers_answers_are_read(recordings_directory: Path) -> None:
    """Bodies of a llama.cpp server and of a proxy before it: answers are complete, failures are readable."""
    import json

    from trio_agent._models import Model

    apis = {"chat-": "openai-completions", "litellm-chat-": "openai-completions"}
    apis |= {"anthropic-": "anthropic-messages", "litellm-anthropic-": "anthropic-messages"}
    paths = sorted((recordings_directory / "local").glob("*.sse"))
    if not paths:
        pytest.skip("no recordings of local servers")
    for path in paths:
        api = next((api for prefix, api in apis.items() if path.name.startswith(prefix)), None)
        if api is None:
            continue
        facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        body = path.read_bytes()
        status = facts.get("status") or 200
        if status >= 400:
            text = read_error(status, body).text
            assert text.startswith(f"{status}: "), path.name
            assert "{" not in text, path.name
            continue
        assert api in WIRE_FORMATS
        message = message_of(Model(id="smollm2-135m-instruct", api=api, provider="llama.cpp"), body)
        cut = "cancelled" in path.name or "killed" in path.name
        assert (message.stop_reason == "error") is cut, (path.name, message.error_message)
        if "tool-call" in path.name or "tool-use" in path.name:
            assert message.tool_calls, path.name
            assert not any(call.arguments_error for call in message.tool_calls), path.name
