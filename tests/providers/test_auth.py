"""Where keys come from, and what is said when there is none."""

from __future__ import annotations

import pytest

from trio_agent import Agent, Hooks, MissingKeyError, Model, StreamOptions
from trio_agent.providers import PROVIDERS, ModelClient
from trio_agent.providers._auth import authorize

from .raw_server import HELLO_REPLY, ask, model_at, serving

MODEL = Model(id="m", api="openai-completions", provider="openai")
CLAUDE = Model(id="c", api="anthropic-messages", provider="anthropic")
ENVIRONMENT = {"OPENAI_API_KEY": "sk-environment", "ANTHROPIC_API_KEY": "sk-ant"}


def key_of(model: Model, options: StreamOptions, **keys: str) -> str | None:
    return authorize(model, options, keys, ENVIRONMENT).options.api_key


def test_the_environment_gives_the_key_of_the_provider() -> None:
    assert key_of(MODEL, StreamOptions()) == "sk-environment"
    assert key_of(CLAUDE, StreamOptions()) == "sk-ant"


def test_a_key_of_the_client_counts_before_the_environment() -> None:
    assert key_of(MODEL, StreamOptions(), openai="sk-client", anthropic="other") == "sk-client"


def test_a_key_of_the_request_counts_before_all_others() -> None:
    assert key_of(MODEL, StreamOptions(api_key="sk-request"), openai="sk-client") == "sk-request"


def test_an_empty_key_sends_none() -> None:
    assert key_of(MODEL, StreamOptions(api_key="")) is None


def test_a_key_is_stripped_of_the_line_end_of_its_file() -> None:
    assert key_of(MODEL, StreamOptions(api_key=" sk-request\n")) == "sk-request"


def test_a_header_of_the_user_needs_no_key() -> None:
    assert key_of(MODEL, StreamOptions(headers={"Authorization": "Bearer mine"})) is None
    assert key_of(Model(id="m", api="a", provider="openai", headers={"X-API-Key": "mine"}), StreamOptions()) is None


@pytest.mark.parametrize(
    ("provider", "variables"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("huggingface", "HF_TOKEN or HUGGINGFACE_API_KEY"),
        ("azure", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_says_which_variable_to_set(provider: str, variables: str) -> None:
    model = Model(id="m", api="openai-completions", provider=provider)

    with pytest.raises(MissingKeyError, match=f"No API key for provider '{provider}': set {variables} in the env"):
        authorize(model, StreamOptions(), {}, {})


@pytest.mark.parametrize("provider", ["ollama", "llama.cpp", "vllm", "lmstudio", "my-box"])
def test_own_servers_need_no_key(provider: str) -> None:
    model = Model(id="m", api="openai-completions", provider=provider)

    assert authorize(model, StreamOptions(), {}, {}).options.api_key is None


def test_a_provider_that_nobody_knows_has_a_variable_of_its_name() -> None:
    model = Model(id="m", api="openai-completions", provider="my-box.2")

    assert authorize(model, StreamOptions(), {}, {"MY_BOX_2_API_KEY": "k"}).options.api_key == "k"


def test_a_token_goes_into_the_authorization_header() -> None:
    authorized = authorize(CLAUDE, StreamOptions(), {}, {"ANTHROPIC_AUTH_TOKEN": "a-long-token"})

    assert authorized.options.api_key is None
    assert authorized.options.headers == {"authorization": "Bearer a-long-token"}
    assert "a-long-token" in authorized.secrets


def test_a_repr_shows_no_key() -> None:
    authorized = authorize(MODEL, StreamOptions(api_key="sk-request-secret"), {}, {})

    assert "secret" not in repr(authorized)
    assert "secret" not in repr(ModelClient(api_keys={"openai": "sk-secret"}))


def test_every_provider_that_needs_a_key_names_a_variable() -> None:
    assert [p.name for p in PROVIDERS.values() if p.needs_key and not p.key_variables] == []


async def test_the_hook_of_an_agent_gives_the_key_for_each_request() -> None:
    asked: list[str] = []

    async def get_api_key(provider: str) -> str:
        asked.append(provider)
        return "sk-from-the-hook"

    async with serving(HELLO_REPLY) as server:
        agent = Agent(model_at(server), hooks=Hooks(get_api_key=get_api_key), stream_fn=ModelClient())
        await agent.prompt("go")

    assert asked == ["openai"]
    assert server.requests[0].headers["authorization"] == "Bearer sk-from-the-hook"


async def test_a_missing_key_is_an_answer_that_failed_and_no_request_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with serving(HELLO_REPLY) as server:
        result = await Agent(model_at(server)).prompt("go")

    assert result.stop_reason == "error"
    assert "set OPENAI_API_KEY" in (result.message.error_message or "" if result.message else "")
    assert server.requests == []


async def test_a_key_in_the_environment_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ModelClient()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-set-later")
    async with serving(HELLO_REPLY) as server:
        await ask(client, model_at(server), StreamOptions())

    assert server.requests[0].headers["authorization"] == "Bearer sk-set-later"
