from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from pi_samples import AGENT_EVENTS, ASSISTANT, MESSAGES

from trio_agent import (
    AgentEnd,
    AgentEvent,
    MessageCodec,
    MessageEnd,
    MessageUpdate,
    Model,
    StreamStart,
    TextDelta,
    TextStart,
    ToolResult,
    TurnEnd,
    UnknownMessage,
    UserMessage,
)
from trio_agent.lowlevel import MessageBuilder

codec = MessageCodec()


@pytest.mark.parametrize("name", AGENT_EVENTS)
def test_agent_events_keep_their_json(name: str) -> None:
    event = codec.decode_event(msgspec.json.encode(AGENT_EVENTS[name]))

    assert msgspec.json.decode(codec.encode_event(event)) == AGENT_EVENTS[name]
    assert codec.decode_event(codec.encode_event(event)) == event


@pytest.mark.parametrize("type_", get_args(AgentEvent))
def test_the_samples_have_every_field_of_every_event(type_: type[msgspec.Struct]) -> None:
    keys = {key for sample in AGENT_EVENTS.values() if sample["type"] == type_.__struct_config__.tag for key in sample}

    assert keys == {"type", *type_.__struct_encode_fields__}


def test_the_samples_have_every_field_of_a_tool_result() -> None:
    keys = {
        key
        for sample in AGENT_EVENTS.values()
        for result in ("result", "partialResult")
        for key in sample.get(result, ())
    }

    assert keys == set(ToolResult.__struct_encode_fields__)


def test_messages_in_events_are_messages() -> None:
    data = msgspec.json.encode({"type": "agent_end", "messages": [MESSAGES["user"], {"role": "note", "a": 1}]})

    event = codec.decode_event(data)

    assert event == AgentEnd(
        messages=(UserMessage(content="Hi", timestamp=1), UnknownMessage("note", b'{"role":"note","a":1}'))
    )
    assert codec.encode_event(event) == data


def test_own_message_types_are_decoded_in_events() -> None:
    class Note(msgspec.Struct, tag_field="role", tag="note"):
        text: str

    event = MessageEnd(message=Note(text="a"))

    assert MessageCodec(Note).decode_event(codec.encode_event(event)) == event


def test_an_update_shows_the_message_so_far_but_does_not_write_it() -> None:
    builder = MessageBuilder(Model(id="m", api="a", provider="p"), timestamp=1)
    builder.add(StreamStart())
    builder.add(TextStart(content_index=0))
    update = MessageUpdate(assistant_message_event=builder.add(TextDelta(content_index=0, delta="a")))

    assert update.message.text == "a"
    assert set(msgspec.json.decode(codec.encode_event(update))) == {"type", "assistantMessageEvent"}


def test_the_message_that_pi_sends_with_an_update_is_ignored() -> None:
    sample = {"type": "message_update", "message": ASSISTANT, "assistantMessageEvent": {"type": "start"}}

    assert codec.decode_event(msgspec.json.encode(sample)) == MessageUpdate(assistant_message_event=StreamStart())


def test_a_turn_without_an_answer_says_so() -> None:
    assert codec.encode_event(TurnEnd(message=None, tool_results=())) == (
        b'{"type":"turn_end","message":null,"toolResults":[]}'
    )


def test_the_content_of_a_result_is_always_written() -> None:
    assert ToolResult().content == ()
    assert msgspec.json.encode(ToolResult(details={})) == b'{"content":[],"details":{}}'


def test_null_details_are_not_absent_details() -> None:
    assert msgspec.json.encode(ToolResult("a", details=None)) == b'{"content":"a","details":null}'
    assert msgspec.json.encode(ToolResult("a")) == b'{"content":"a"}'
