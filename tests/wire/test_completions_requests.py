from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trio_agent._messages import Message
from trio_agent._models import Model

from .transcripts import PNG, answer, body, call, request, result, system, thought, tool, user

API = "openai-completions"
PLAIN = Model(id="m", api=API, provider="test", base_url="https://llm.example/v1", input=("text", "image"))


def model(provider: str = "test", **fields: Any) -> Model:
    return msgspec.structs.replace(PLAIN, provider=provider, base_url="", **fields)


def wire(*messages: Message, by: Model = PLAIN, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body(by, *messages, **options)["messages"]
    return found


def test_smallest_request() -> None:
    made = request(PLAIN, user("hi"), api_key="sk-1")

    assert made.url == "https://llm.example/v1/chat/completions"
    assert json.loads(made.content()) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "store": False,
    }
    assert made.headers == {
        "accept": "text/event-stream, application/json",
        "content-type": "application/json",
        "authorization": "Bearer sk-1",
    }


def test_no_repr_shows_key_or_prompt() -> None:
    made = request(PLAIN, user("secret prompt"), api_key="sk-1", headers={"x-other": "secret"})

    assert "sk-1" not in repr(made)
    assert "secret" not in repr(made)


def test_headers_win_in_order_whatever_their_case() -> None:
    own = model(headers={"X-A": "model", "x-b": "model"})

    headers = request(own, user("hi"), api_key="k", headers={"x-a": "option", "Authorization": None}).headers

    assert (headers["x-a"], headers["x-b"]) == ("option", "model")
    assert "authorization" not in headers


def test_without_a_key_no_header_is_sent_for_it() -> None:
    assert "authorization" not in request(PLAIN, user("hi")).headers
    assert request(model("azure"), user("hi"), api_key="k").headers["api-key"] == "k"


def test_query_of_the_base_url_stays_behind_the_path() -> None:
    azure = msgspec.structs.replace(PLAIN, base_url="https://x.openai.azure.com/openai/v1/?api-version=preview")

    assert request(azure, user("hi")).url == (
        "https://x.openai.azure.com/openai/v1/chat/completions?api-version=preview"
    )


def test_tools_are_declared_with_their_schema_untouched() -> None:
    declared = tool("read", **{"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": []})

    made = body(model(compat={"supportsStrictMode": True}), system("", declared), user("a"))

    assert made["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "read",
                "description": "To read",
                "parameters": declared.parameters,
                "strict": False,
            },
        }
    ]


@pytest.mark.parametrize(("compat", "sent"), [({"supportsStrictMode": True}, True), ({}, None)])
def test_strictness_is_asked_for_where_servers_take_it(compat: Any, sent: bool | None) -> None:
    declared = msgspec.structs.replace(tool("read"), strict=True)

    [made] = body(model(compat=compat), system("", declared), user("a"))["tools"]

    assert made["function"].get("strict") is sent


def test_tool_with_a_name_that_servers_refuse_goes_by_an_alias_everywhere() -> None:
    made = request(
        PLAIN,
        system("", tool("files.read")),
        answer(PLAIN, call("1", "files.read")),
        result("1", "A", name="files.read"),
        tool_choice={"type": "function", "function": {"name": "files.read"}},
    )
    [alias] = made.aliases

    assert made.aliases[alias] == "files.read"
    assert made.body["tools"][0]["function"]["name"] == alias
    assert made.body["messages"][0]["tool_calls"][0]["function"]["name"] == alias
    assert made.body["tool_choice"]["function"]["name"] == alias


def test_removed_tools_are_not_declared() -> None:
    removal = (
        system("", tool("read")),
        msgspec.convert({"role": "system", "content": "", "timestamp": 1, "toolsRemoved": [{"name": "read"}]}, Message),
    )

    assert "tools" not in body(PLAIN, *removal, user("a"))


def test_empty_tools_are_sent_where_the_history_needs_them() -> None:
    strict = model(compat={"requiresToolsWithToolHistory": True})

    assert body(strict, answer(strict, call("1")), result("1", "A"))["tools"] == []
    assert "tools" not in body(strict, user("a"))


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("any", "required"),
        ({"type": "tool", "name": "read"}, {"type": "function", "function": {"name": "read"}}),
        ({"type": "allowed_tools"}, {"type": "allowed_tools"}),
    ],
)
def test_tool_choice_of_any_api_is_understood(choice: Any, sent: Any) -> None:
    assert body(PLAIN, user("a"), tool_choice=choice)["tool_choice"] == sent


def test_limits_and_temperature() -> None:
    sized = model("deepseek", max_tokens=100)

    made = body(sized, user("a"), temperature=0.0)

    assert (made["max_tokens"], made["temperature"]) == (100, 0)
    assert body(model("openai", max_tokens=9), user("a"), max_tokens=5)["max_completion_tokens"] == 5
    assert "max_completion_tokens" not in body(PLAIN, user("a"), max_tokens=0)


def test_limit_leaves_the_prompt_its_room() -> None:
    small = model(max_tokens=8000, context_window=8192)

    assert body(small, user("x" * 3500))["max_completion_tokens"] == 8192 - 1000 - 1024
    assert body(small, user("x" * 70_000))["max_completion_tokens"] == 1


def test_sampling_parameters_are_merged_last() -> None:
    own = model(
        reasoning=True,
        sampling_params={"top_p": 0.1, "seed": 1},
        sampling_params_by_thinking_level={"high": {"seed": 2}, "off": {"seed": 9}},
    )

    made = body(own, user("a"), reasoning="high", sampling_params={"top_p": 0.2, "stream": False})

    assert (made["top_p"], made["seed"], made["stream"]) == (0.2, 2, False)
    assert body(own, user("a"))["seed"] == 9


def test_session_is_the_cache_key_where_that_is_known_to_help() -> None:
    openai = model("openai")
    openai = msgspec.structs.replace(openai, base_url="https://api.openai.com/v1")
    long_id = "s" * 80

    assert body(openai, user("a"), session_id=long_id)["prompt_cache_key"] == "s" * 64
    assert "prompt_cache_key" not in body(PLAIN, user("a"), session_id="s")
    assert body(PLAIN, user("a"), session_id="s", cache_retention="long")["prompt_cache_retention"] == "24h"
    assert "prompt_cache_key" not in body(openai, user("a"), session_id="s", cache_retention="none")


def test_session_affinity_headers() -> None:
    fireworks, openrouter = model("fireworks"), model("openrouter")
    nosession = model(compat={"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openai-nosession"})

    assert request(fireworks, user("a"), session_id="s").headers["session_id"] == "s"
    assert request(openrouter, user("a"), session_id="s").headers["x-session-id"] == "s"
    assert "session_id" not in request(nosession, user("a"), session_id="s").headers
    assert request(nosession, user("a"), session_id="s").headers["x-session-affinity"] == "s"
    assert "x-session-id" not in request(openrouter, user("a"), session_id="s", cache_retention="none").headers


def test_anthropic_behind_a_router_is_told_what_to_cache() -> None:
    claude = model("openrouter", id="anthropic/claude-sonnet-4.5")
    mark = {"type": "ephemeral", "ttl": "1h"}

    made = body(
        claude,
        system("S", tool("a"), tool("b")),
        user("q"),
        answer(claude, call("1")),
        result("1", "A"),
        answer(claude, call("2")),
        cache_retention="long",
    )

    assert made["messages"][0]["content"] == [{"type": "text", "text": "S", "cache_control": mark}]
    assert [declared.get("cache_control") for declared in made["tools"]] == [None, mark]
    marked = [m for m in made["messages"][1:] if isinstance(m["content"], list) and "cache_control" in m["content"][-1]]
    assert [message["role"] for message in marked] == ["tool"]


def test_mark_for_the_cache_finds_the_last_text_wherever_it_is() -> None:
    router = model(compat={"cacheControlFormat": "anthropic", "requiresThinkingAsText": True})
    mark = {"type": "ephemeral"}

    [seen] = body(router, user("a", "b", PNG))["messages"]
    [thinking] = body(router, answer(router, thought("hm"), "ok"))["messages"]

    assert [part.get("cache_control") for part in seen["content"]] == [None, mark, None]
    assert [part.get("cache_control") for part in thinking["content"]] == [None, mark]
    assert body(router, user(PNG)) == body(router, user(PNG), cache_retention="none")


@pytest.mark.parametrize(
    ("provider", "on", "off"),
    [
        ("groq", {"reasoning_effort": "low"}, {}),
        ("openrouter", {"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "none"}}),
        ("deepseek", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, {"thinking": {"type": "disabled"}}),
        ("together", {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": False}}),
        (
            "zai",
            {"thinking": {"type": "enabled", "clear_thinking": False}},
            {"thinking": {"type": "disabled"}},
        ),
        ("mistral", {}, {}),
    ],
)
def test_thinking_is_asked_for_as_each_provider_wants(provider: str, on: Any, off: Any) -> None:
    thinker = model(provider, reasoning=True)
    plain = body(model(provider), user("a"), reasoning="low")

    assert body(thinker, user("a"), reasoning="low") == plain | on
    assert body(thinker, user("a")) == plain | off


@pytest.mark.parametrize(
    ("form", "on", "off"),
    [
        ("qwen", {"enable_thinking": True, "reasoning_effort": "high"}, {"enable_thinking": False}),
        (
            "qwen-chat-template",
            {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}},
        ),
        ("yet unknown", {}, {}),
    ],
)
def test_thinking_in_the_form_that_the_model_names(form: str, on: Any, off: Any) -> None:
    thinker = model(reasoning=True, compat={"thinkingFormat": form})
    plain = body(PLAIN, user("a"))

    assert body(thinker, user("a"), reasoning="high") == plain | on
    assert body(thinker, user("a")) == plain | off


def test_thinking_that_cannot_be_turned_off_is_not_asked_to() -> None:
    always = model("openrouter", reasoning=True, thinking_level_map={"off": None})
    named = model(reasoning=True, thinking_level_map={"off": "none", "high": "max"})

    assert "reasoning" not in body(always, user("a"))
    assert body(named, user("a"))["reasoning_effort"] == "none"
    assert body(named, user("a"), reasoning="high")["reasoning_effort"] == "max"


def test_thinking_budget_leaves_room_for_the_answer() -> None:
    local = model(reasoning=True, max_tokens=8192, compat={"thinkingTokenBudgetField": "thinking_budget_tokens"})

    assert body(local, user("a"), reasoning="high")["thinking_budget_tokens"] == 8192 - 1024
    assert body(local, user("a"), reasoning="low")["thinking_budget_tokens"] == 2048
    assert body(local, user("a"), reasoning="low", thinking_budgets={"low": 5})["thinking_budget_tokens"] == 5
    assert "thinking_budget_tokens" not in body(local, user("a"), reasoning="low", max_tokens=1000)


def test_other_quirks_are_switches() -> None:
    bare = model(compat={"supportsStore": False, "supportsUsageInStreaming": False, "vllmPriority": 3})
    zai = model("zai")

    assert body(bare, user("a")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "a"}],
        "stream": True,
        "priority": 3,
    }
    assert "tool_stream" not in body(zai, system("", tool("read")), user("a"))
    zai = model("zai", compat={"zaiToolStream": True})
    assert body(zai, system("", tool("read")), user("a"))["tool_stream"] is True


def test_compat_of_the_wrong_type_names_the_model() -> None:
    with pytest.raises(ValueError, match="compat of model 'm'"):
        request(model(compat={"supportsStore": "maybe"}), user("a"))


def test_unpaired_surrogates_never_reach_the_wire() -> None:
    lone = "a\ud83d b \ud83d\ude00 \ude00"
    made = request(
        PLAIN,
        system(lone, tool(f"t{lone}")),
        user(lone, lone),
        answer(PLAIN, lone, call("1", "read", text=lone, **{lone: [lone]})),
        result("1", lone),
    )

    text = made.content().decode("utf-8")

    assert "a b 😀 " in text
    assert "\\ud" not in text.lower()
