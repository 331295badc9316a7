from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from pi_samples import ASSISTANT, STREAM_EVENTS

from trio_agent import (
    AssistantMessageEvent,
    Model,
    StreamDone,
    StreamError,
    StreamStart,
    TextDelta,
    ToolCallDelta,
)
from trio_agent.lowlevel import MessageBuilder

MODEL = Model(id="m", api="a", provider="p")


def decode(sample: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(sample), type=AssistantMessageEvent)


@pytest.mark.parametrize("name", STREAM_EVENTS)
def test_stream_events_keep_their_json(name: str) -> None:
    event = decode(STREAM_EVENTS[name])

    assert msgspec.json.decode(msgspec.json.encode(event)) == STREAM_EVENTS[name]


@pytest.mark.parametrize("type_", get_args(AssistantMessageEvent))
def test_the_samples_have_every_field_of_every_event(type_: type[msgspec.Struct]) -> None:
    keys = {key for sample in STREAM_EVENTS.values() if sample["type"] == type_.__struct_config__.tag for key in sample}

    assert keys == {"type", *type_.__struct_encode_fields__}


def test_the_partial_message_that_pi_sends_along_is_ignored() -> None:
    event = decode({"type": "text_delta", "contentIndex": 0, "delta": "a", "partial": ASSISTANT})

    assert event == TextDelta(content_index=0, delta="a")


@pytest.mark.parametrize("reason", ["error", "aborted", "pending", "deferred"])
def test_done_takes_only_reasons_of_complete_answers(reason: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$.reason"):
        decode({"type": "done", "reason": reason})


def test_error_takes_only_reasons_of_failed_answers() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$.reason"):
        decode({"type": "error", "reason": "stop"})


def test_an_event_that_was_not_folded_has_no_partial() -> None:
    with pytest.raises(RuntimeError, match="TextDelta was not folded by a MessageBuilder"):
        _ = TextDelta(content_index=0, delta="a").partial


def test_the_partial_is_no_part_of_json_equality_or_repr() -> None:
    plain = StreamStart()
    folded = MessageBuilder(MODEL, timestamp=1).add(StreamStart())

    assert folded == plain
    assert hash(folded) == hash(plain)
    assert repr(folded) == "StreamStart()"
    assert msgspec.json.encode(folded) == b'{"type":"start"}'
    assert folded.__struct_fields__ == ()


def test_partial_arguments_of_a_lone_event_are_empty() -> None:
    assert ToolCallDelta(content_index=0, delta='{"a":1}').partial_arguments == {}


def test_events_can_be_matched_by_class() -> None:
    match decode(STREAM_EVENTS["error"]):
        case StreamDone():
            pytest.fail("matched another class")
        case StreamError(reason="aborted", message=message):
            assert message is not None
            assert message.stop_reason == "aborted"
        case _:
            pytest.fail("matched no class")
