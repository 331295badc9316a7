from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trio_agent._messages import Message
from trio_agent._models import Model

from .transcripts import PNG, answer, body, call, result, system, thought, user

API = "openai-completions"
PLAIN = Model(id="m", api=API, provider="test", base_url="https://llm.example/v1", input=("text", "image"))


def model(provider: str = "test", **fields: Any) -> Model:
    return msgspec.structs.replace(PLAIN, provider=provider, base_url="", **fields)


def wire(*messages: Message, by: Model = PLAIN, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body(by, *messages, **options)["messages"]
    return found


def test_system_prompt_is_replayed_into_one_message() -> None:
    messages = wire(system("Base."), user("a"), system("More."), user("b"))

    assert messages == [
        {"role": "system", "content": "Base.\n\nMore."},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_developer_role_is_for_openais_reasoning_models_only() -> None:
    assert wire(system(), user("a"), by=model("openai", reasoning=True))[0]["role"] == "developer"
    assert wire(system(), user("a"), by=model("openai"))[0]["role"] == "system"
    assert wire(system(), user("a"), by=model("groq", reasoning=True))[0]["role"] == "system"


def test_user_content_in_parts_leaves_empty_text_out() -> None:
    assert wire(user("look", PNG, ""), user("", ""), user("")) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}},
            ],
        },
        {"role": "user", "content": ""},
    ]


def test_answers_are_one_string_with_their_calls() -> None:
    [message, *_] = wire(answer(PLAIN, "a", "  ", "b", call("1", path="ä")), answer(PLAIN, " "), answer(PLAIN))

    assert message == {
        "role": "assistant",
        "content": "ab",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}}],
    }
    assert len(wire(answer(PLAIN, " "), answer(PLAIN))) == 0


def test_answer_with_calls_only_has_null_content_unless_that_is_refused() -> None:
    strict = model(compat={"requiresNonNullAssistantContent": True})

    assert wire(answer(PLAIN, call("1")))[0]["content"] is None
    assert wire(answer(strict, call("1")), by=strict)[0]["content"] == ""


def test_results_say_something_and_their_images_follow_together() -> None:
    messages = wire(
        answer(PLAIN, call("1"), call("2"), call("3")), result("1", "A", PNG), result("2", PNG), result("3"), user("x")
    )

    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "tool", "user", "user"]
    assert [message["content"] for message in messages[1:4]] == ["A", "(see attached image)", "(no tool output)"]
    assert [part["type"] for part in messages[4]["content"]] == ["text", "image_url", "image_url"]


def test_server_that_wants_an_assistant_between_result_and_user_gets_one() -> None:
    strict = model(compat={"requiresAssistantAfterToolResult": True, "requiresToolResultName": True})

    messages = wire(answer(strict, call("1")), result("1", "A"), user("x"), by=strict)

    assert [message["role"] for message in messages] == ["assistant", "tool", "assistant", "user"]
    assert messages[1]["name"] == "read"
    with_image = wire(answer(strict, call("1")), result("1", PNG), user("x"), by=strict)
    assert [message["role"] for message in with_image] == ["assistant", "tool", "assistant", "user", "user"]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "reasoning_text"])
def test_reasoning_goes_back_in_the_field_it_came_in(field: str) -> None:
    [message] = wire(answer(PLAIN, thought("a", field), thought(" "), thought("b"), "ok"))

    assert message[field] == "a\nb"


def test_reasoning_details_go_back_unchanged() -> None:
    details = [{"type": "reasoning.encrypted", "data": "QQ==", "id": "r1", "format": "f", "index": 0}]

    [message] = wire(answer(PLAIN, thought("", json.dumps(details)), "ok"))

    assert message == {"role": "assistant", "content": "ok", "reasoning_details": details}


@pytest.mark.parametrize("signature", [None, "SIG", "[1]", "[]", "[broken"])
def test_reasoning_with_another_signature_stays_here(signature: str | None) -> None:
    assert wire(answer(PLAIN, thought("a", signature), "ok")) == [{"role": "assistant", "content": "ok"}]


def test_reasoning_as_text_where_the_server_knows_no_other_way() -> None:
    mistral = model("mistral", reasoning=True)

    [message] = wire(answer(mistral, thought("a"), thought("b"), "ok"), by=mistral)

    assert message["content"] == [{"type": "text", "text": "a\n\nb"}, {"type": "text", "text": "ok"}]


def test_deepseek_gets_reasoning_content_with_every_answer() -> None:
    deepseek = model("deepseek", reasoning=True)

    assert wire(answer(deepseek, "ok"), by=deepseek)[0]["reasoning_content"] == ""


def test_mistral_gets_ids_of_nine_letters_and_digits() -> None:
    mistral = model("mistral")

    first, second = wire(answer(PLAIN, call("call_abc")), result("call_abc", "A"), by=mistral)

    assert len(first["tool_calls"][0]["id"]) == 9
    assert second["tool_call_id"] == first["tool_calls"][0]["id"]
