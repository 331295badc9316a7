from __future__ import annotations

import copy
from typing import Any, Union, get_args

import msgspec
import pytest
from pi_samples import ASSISTANT, BLOCKS, FULL_USAGE, MESSAGES, TOOL_RESULT, USAGE, ZERO_USAGE

from trio_agent import (
    AssistantContent,
    AssistantMessage,
    Cost,
    ImageContent,
    Message,
    MessageCodec,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UnknownMessage,
    Usage,
    UserMessage,
)

AnyBlock = Union[AssistantContent, ImageContent]  # noqa: UP007
Json = dict[str, Any]


def round_trip(sample: Json, type_: Any) -> Json:
    value = msgspec.json.decode(msgspec.json.encode(sample), type=type_)
    decoded: Json = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_keep_their_json(name: str) -> None:
    assert round_trip(BLOCKS[name], AnyBlock) == BLOCKS[name]


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_keep_their_json(name: str) -> None:
    assert round_trip(MESSAGES[name], Message) == MESSAGES[name]


@pytest.mark.parametrize("sample", [USAGE, FULL_USAGE, ZERO_USAGE])
def test_usage_keeps_its_json(sample: Json) -> None:
    assert round_trip(sample, Usage) == sample


def sampled_keys(type_: type[msgspec.Struct], samples: dict[str, Json]) -> set[str]:
    config = type_.__struct_config__
    return {key for sample in samples.values() if sample.get(config.tag_field or "") == config.tag for key in sample}


@pytest.mark.parametrize("type_", [TextContent, ThinkingContent, ImageContent, ToolCall, *get_args(Message)])
def test_the_samples_have_every_field(type_: type[msgspec.Struct]) -> None:
    samples = BLOCKS if type_.__struct_config__.tag_field == "type" else MESSAGES
    written = set(type_.__struct_encode_fields__) | {str(type_.__struct_config__.tag_field)}

    assert sampled_keys(type_, samples) == written


def test_the_samples_have_every_stop_reason() -> None:
    reasons = {sample["stopReason"] for sample in MESSAGES.values() if "stopReason" in sample}

    assert reasons == set(get_args(StopReason))


@pytest.mark.parametrize(
    ("type_", "always"),
    [
        (SystemMessage, {"content", "timestamp"}),
        (UserMessage, {"content", "timestamp"}),
        (AssistantMessage, set(ASSISTANT) - {"role"}),
        (ToolResultMessage, set(TOOL_RESULT) - {"role"}),
        (Usage, set(USAGE)),
        (Cost, {"input", "output", "cacheRead", "cacheWrite", "total"}),
        (TextContent, {"text"}),
        (ThinkingContent, {"thinking"}),
        (ImageContent, {"data", "mimeType"}),
        (ToolCall, {"id", "name", "arguments"}),
    ],
)
def test_fields_that_pi_always_writes_are_required(type_: type[msgspec.Struct], always: set[str]) -> None:
    required = {field.encode_name for field in msgspec.structs.fields(type_) if field.required}

    assert required == always


@pytest.mark.parametrize("field", sorted(set(ASSISTANT) - {"role"}))
def test_a_missing_field_is_named(field: str) -> None:
    sample = {key: value for key, value in ASSISTANT.items() if key != field}

    with pytest.raises(msgspec.ValidationError, match=f"missing required field `{field}`"):
        round_trip(sample, Message)


def test_a_wrong_value_is_named_with_its_path() -> None:
    sample = copy.deepcopy(MESSAGES["full assistant"])
    sample["content"][6]["arguments"] = "{}"

    with pytest.raises(msgspec.ValidationError, match=r"Expected `object`, got `str` - at `\$.content\[6\].arguments`"):
        round_trip(sample, Message)


def test_an_image_is_no_content_of_an_assistant() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Invalid value 'image' - at `\$.content\[0\].type`"):
        round_trip({**ASSISTANT, "content": [BLOCKS["image"]]}, Message)


def test_values_are_frozen_and_compare_by_content() -> None:
    block = TextContent(text="a")

    with pytest.raises(AttributeError):
        block.text = "b"  # type: ignore[misc]
    assert block == TextContent(text="a")
    assert block != TextContent(text="b")
    assert hash(block) == hash(TextContent(text="a"))


def test_sequences_are_tuples() -> None:
    message = msgspec.convert(MESSAGES["full system"], SystemMessage)

    assert isinstance(message.content, tuple)
    assert isinstance(message.tools_added, tuple)
    assert isinstance(message.tools_removed, tuple)
    assert isinstance(msgspec.convert(ASSISTANT, AssistantMessage).content, tuple)


def test_messages_from_text_are_of_this_moment() -> None:
    user, system = UserMessage.from_text("a"), SystemMessage.from_text("b")

    assert (user.content, system.content) == ("a", "b")
    assert isinstance(user.timestamp, int)
    assert 1_700_000_000_000 < user.timestamp <= system.timestamp


def test_text_and_tool_calls_of_an_answer_are_read_in_order() -> None:
    message = msgspec.convert(MESSAGES["full assistant"], AssistantMessage)

    assert message.text == "HelloHello"
    assert [call.name for call in message.tool_calls] == ["read", "now", "read"]


def test_text_of_a_result_leaves_images_out() -> None:
    assert msgspec.convert(MESSAGES["full tool result"], ToolResultMessage).text == "Hello"


def test_unknown_messages_compare_by_role_and_bytes() -> None:
    message = UnknownMessage("note", b'{"role":"note"}')

    assert message == UnknownMessage("note", b'{"role":"note"}')
    assert hash(message) == hash(UnknownMessage("note", b'{"role":"note"}'))
    assert message != UnknownMessage("note", b'{"role": "note"}')
    assert message != "note"
    assert repr(message) == """UnknownMessage(role='note', raw=b'{"role":"note"}')"""


def test_usage_adds_up() -> None:
    one = msgspec.convert({**USAGE, "reasoning": 7}, Usage)
    other = msgspec.convert(FULL_USAGE, Usage)

    total = one + other

    assert total == Usage(
        input=2000,
        output=400,
        cache_read=20,
        cache_write=40,
        total_tokens=2460,
        cost=Cost(input=0.006, output=0.03, cache_read=0.0006, cache_write=0.0075, total=0.0441),
        cache_write_1h=5,
        reasoning=7,
    )


def test_adding_usage_without_a_breakdown_makes_none_up() -> None:
    usage = msgspec.convert(USAGE, Usage)

    assert (usage + usage).reasoning is None
    assert (usage + usage).cache_write_1h is None


def test_zero_usage_is_neutral() -> None:
    usage = msgspec.convert(USAGE, Usage)

    assert Usage.zero() + usage == usage
    assert usage + Usage.zero() == usage
    assert msgspec.json.decode(msgspec.json.encode(Usage.zero())) == ZERO_USAGE


def test_messages_are_exchanged_by_the_codec_as_by_msgspec() -> None:
    codec = MessageCodec()
    for sample in MESSAGES.values():
        data = msgspec.json.encode(sample)
        assert codec.decode(data) == msgspec.json.decode(data, type=Message)
