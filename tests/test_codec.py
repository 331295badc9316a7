from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import messages
from pi_samples import ASSISTANT, BLOCKS, MESSAGES, STREAM_EVENTS, TOOL_RESULT

from trio_agent import (
    AgentEnd,
    AgentMessage,
    AssistantMessage,
    MessageCodec,
    MessageEnd,
    SystemMessage,
    TextContent,
    ToolResultMessage,
    TranscriptError,
    UnknownMessage,
    UserMessage,
)


class Note(msgspec.Struct, tag_field="role", tag="note", frozen=True):
    text: str
    pinned: bool = False


codec = MessageCodec()
with_notes = MessageCodec(Note)


@given(messages())
def test_messages_round_trip(message: AgentMessage) -> None:
    data = codec.encode(message)

    assert codec.decode(data) == message
    assert codec.encode(codec.decode(data)) == data
    assert b"\n" not in data


@given(st.lists(messages(), max_size=5))
@settings(max_examples=50)
def test_lists_round_trip(transcript: list[AgentMessage]) -> None:
    data = codec.encode_list(transcript)

    assert codec.decode_list(data) == transcript
    assert codec.encode_list(iter(transcript)) == data
    assert codec.encode_list(tuple(transcript)) == data


@given(st.lists(messages(), max_size=3))
@settings(max_examples=50)
def test_events_round_trip(transcript: list[AgentMessage]) -> None:
    event = AgentEnd(messages=tuple(transcript))

    assert codec.decode_event(codec.encode_event(event)) == event


@given(messages())
@settings(max_examples=50)
def test_text_and_bytes_decode_alike(message: AgentMessage) -> None:
    data = codec.encode(message)

    assert codec.decode(data.decode()) == message
    assert codec.decode_list(f"[{data.decode()}]") == [message]


# Unknown roles and own types


@pytest.mark.parametrize(
    "raw",
    [
        b'{"role":"note","text":"a"}',
        b' { "text" : "\\u00e9\xc3\xa9" , "role":"note", "n": 1.50, "big": 123456789012345678901234567890 } ',
        b'{"role":"note","half":"\\ud83d"}',
        b'{"content":null,"role":"note"}',
        b'{"role":""}',
    ],
)
def test_an_unknown_role_is_kept_byte_for_byte(raw: bytes) -> None:
    message = codec.decode(raw)

    assert message == UnknownMessage(json.loads(raw)["role"], raw)
    assert codec.encode(message) == raw
    assert codec.encode_list([message, message]) == b"[" + raw + b"," + raw + b"]"


def test_unknown_roles_in_a_list_are_kept_byte_for_byte() -> None:
    raw = b'{"role" : "note",  "text":"a"}'
    data = b"[" + msgspec.json.encode(MESSAGES["user"]) + b", " + raw + b"\n]"

    messages = codec.decode_list(data)

    assert messages == [UserMessage(content="Hi", timestamp=1), UnknownMessage("note", raw)]


def test_an_unknown_message_does_not_keep_the_list_that_it_was_in_alive() -> None:
    [message] = codec.decode_list(b'[{"role":"note"}]')

    assert isinstance(message, UnknownMessage)
    assert type(message.raw) is bytes


def test_own_types_join_the_union() -> None:
    transcript: list[AgentMessage] = [Note(text="a", pinned=True), UserMessage(content="b", timestamp=1)]

    assert with_notes.decode_list(with_notes.encode_list(transcript)) == transcript
    assert with_notes.decode(b'{"role":"note","text":"a"}') == Note(text="a")
    assert with_notes.decode_event(with_notes.encode_event(MessageEnd(message=Note(text="a")))) == MessageEnd(
        message=Note(text="a")
    )


def test_what_one_codec_does_not_know_another_can_read() -> None:
    unknown = codec.decode(with_notes.encode(Note(text="a")))

    assert isinstance(unknown, UnknownMessage)
    assert with_notes.decode(codec.encode(unknown)) == Note(text="a")


def test_an_own_type_is_checked() -> None:
    with pytest.raises(TranscriptError, match=r"not a valid 'note' message: Expected `str`, got `int` - at `\$.text`"):
        with_notes.decode(b'{"role":"note","text":1}')


class Untagged(msgspec.Struct):
    text: str


class TaggedByType(msgspec.Struct, tag_field="type", tag="note"):
    text: str


class NumberedRole(msgspec.Struct, tag_field="role", tag=3):
    text: str


class SecondUser(msgspec.Struct, tag_field="role", tag="user"):
    text: str


@pytest.mark.parametrize("own_type", [Untagged, TaggedByType, NumberedRole, dict])
def test_a_type_without_a_role_is_refused(own_type: Any) -> None:
    with pytest.raises(TypeError, match='tag_field="role"'):
        MessageCodec(own_type)


@pytest.mark.parametrize("own_types", [(SecondUser,), (Note, Note)])
def test_a_role_that_is_taken_is_refused(own_types: tuple[type[msgspec.Struct], ...]) -> None:
    with pytest.raises(TypeError, match="the same role"):
        MessageCodec(*own_types)


def test_what_is_no_message_cannot_be_encoded() -> None:
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        codec.encode(object())  # type: ignore[arg-type]


# Old and broken transcripts


@pytest.mark.parametrize(
    ("sample", "type_"),
    [
        (MESSAGES["system"], SystemMessage),
        (MESSAGES["user"], UserMessage),
        (ASSISTANT, AssistantMessage),
        (TOOL_RESULT, ToolResultMessage),
    ],
)
def test_null_content_reads_as_empty(sample: dict[str, Any], type_: type) -> None:
    data = msgspec.json.encode({**sample, "content": None})
    expected: Any = msgspec.convert({**sample, "content": []}, type_)

    assert codec.decode(data) == expected
    assert codec.decode_list(b"[" + data + b"]") == [expected]
    assert codec.decode_event(b'{"type":"message_end","message":' + data + b"}") == MessageEnd(message=expected)


def test_missing_content_is_not_empty_content() -> None:
    with pytest.raises(TranscriptError, match="missing required field `content`"):
        codec.decode(b'{"role":"user","timestamp":1}')


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "not a message"),
        (b"{", "not a message"),
        (b'{"role":"user","content":null', "not a message"),
        (b"[]", "not a message: Expected `object`, got `array`"),
        (b'"user"', "not a message: Expected `object`, got `str`"),
        (b"null", "not a message"),
        (b'{"content":"a"}', "not a message: Object missing required field `role`"),
        (b'{"role":1}', r"not a message: Expected `str` - at `\$.role`"),
        (b'{"role":"user","content":"\xff","timestamp":1}', "not a message"),
        (b'{"role":"note","content":"\xff"}', "not a message"),
        (b'{"role":"note","n":NaN}', "not a message"),
        (b'{"role":"note","n":Infinity}', "not a message"),
        (b'{"role":"user","content":"a"} {}', "not a message"),
        (b'{"role":"note","a":' + b"[" * 100_000, "not a message"),
        (b'{"role":"note","n":' + b"1" * 5000 + b"}", "not a message"),
        (
            b'{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}],"timestamp":1}',
            r"not a valid 'user' message: Object missing required field `text` - at `\$.content\[1\]`",
        ),
        (
            b'{"role":"user","content":"a","timestamp":"now"}',
            r"not a valid 'user' message: Expected `int`, got `str` - at `\$.timestamp`",
        ),
        (b'{"role":"user","content":null}', "not a valid 'user' message: .*`timestamp`"),
        (b'{"role":"user","content":"\\ud83d"}', "not a valid 'user' message: .*`timestamp`"),
    ],
)
def test_broken_messages_say_what_is_wrong_and_where(data: bytes, text: str) -> None:
    with pytest.raises(TranscriptError, match=text):
        codec.decode(data)


def test_text_that_no_encoding_can_hold_is_a_transcript_error() -> None:
    data = '{"role":"user","content":"\ud83d","timestamp":1}'

    with pytest.raises(TranscriptError, match="not a message"):
        codec.decode(data)
    with pytest.raises(TranscriptError, match="not a JSON array"):
        codec.decode_list(f"[{data}]")
    with pytest.raises(TranscriptError, match="not an agent event"):
        codec.decode_event(f'{{"type":"message_end","message":{data}}}')


def test_a_broken_message_in_a_list_is_counted() -> None:
    data = b"[" + msgspec.json.encode(MESSAGES["user"]) + b',{"role":"user","content":3,"timestamp":1}]'

    with pytest.raises(TranscriptError, match=r"message 1: not a valid 'user' message: .* at `\$.content`"):
        codec.decode_list(data)


@pytest.mark.parametrize("data", [b"", b"{}", b"[", b"[1", b'[{"role":"user"', b'["\xff"'])
def test_what_is_no_array_is_a_transcript_error(data: bytes) -> None:
    with pytest.raises(TranscriptError, match="not a JSON array of messages"):
        codec.decode_list(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{}", "not an agent event: Object missing required field `type`"),
        (b'{"type":"later"}', r"Invalid value 'later' - at `\$.type`"),
        (b'{"type":"turn_end","toolResults":[]}', "missing required field `message`"),
        (b'{"type":"message_update","assistantMessageEvent":{"type":"x"}}', r"at `\$.assistantMessageEvent.type`"),
        (b'{"type":"message_end","message":{"role":"user","content":1}}', "not a valid 'user' message"),
        (b'{"type":"message_end","message":3}', "not a message"),
    ],
)
def test_broken_events_say_what_is_wrong(data: bytes, text: str) -> None:
    with pytest.raises(TranscriptError, match=text):
        codec.decode_event(data)


# Halves of surrogate pairs: JavaScript writes them as escapes, and Python has them in undecodable file names.

HALF = "a\ud83d"


def test_halves_of_surrogate_pairs_are_written_as_escapes_and_read_again() -> None:
    message = UserMessage(content=HALF, timestamp=1)
    unknown = UnknownMessage("note", b'{"role":"note","n":1.0}')
    data = codec.encode(message)

    assert data == b'{"role":"user","content":"a\\ud83d","timestamp":1}'
    assert codec.decode(data) == message
    assert codec.decode_list(codec.encode_list([unknown, message])) == [unknown, message]
    assert codec.decode_event(codec.encode_event(MessageEnd(message=message))) == MessageEnd(message=message)
    spaced = b" [ " + unknown.raw + b" ,\n" + data + b" ] "
    assert codec.decode_list(spaced) == codec.decode_list(spaced.decode()) == [unknown, message]
    both = AgentEnd(messages=(unknown, message))
    assert codec.decode_event(codec.encode_event(both)) == both


@pytest.mark.parametrize("name", STREAM_EVENTS)
def test_events_with_such_halves_keep_their_json(name: str) -> None:
    texts = {key: HALF for key in ("delta", "content", "id") if key in STREAM_EVENTS[name]}
    sample = {"type": "message_update", "assistantMessageEvent": STREAM_EVENTS[name] | texts}

    event = codec.decode_event(json.dumps(sample))

    assert json.loads(codec.encode_event(event)) == sample


def test_own_types_with_such_halves_keep_their_json() -> None:
    assert with_notes.decode(with_notes.encode(Note(text=HALF))) == Note(text=HALF)


def test_a_number_that_is_none_is_refused_beside_such_halves() -> None:
    with pytest.raises(TranscriptError, match="1e999 is no number in JSON"):
        codec.decode(b'{"role":"toolResult","details":{"n":1e999,"s":"\\ud83d"}}')


def test_fields_of_later_versions_are_skipped() -> None:
    data = msgspec.json.encode({**MESSAGES["user"], "later": 1, "content": [{**BLOCKS["text"], "later": {}}]})

    assert codec.decode(data) == UserMessage(content=(TextContent(text="Hello"),), timestamp=1)
