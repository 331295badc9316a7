"""The providers as data: where they are, what they speak, and which environment variables hold their keys.

How a server departs from the API that it imitates is the business of ``wire._compat``; which models there are is that
of ``_model_data``. A provider that is missing here needs no entry: see :func:`openai_compatible`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from trio_agent._messages import JsonObject, Value
from trio_agent._models import Model
from trio_agent.providers._model_data import ModelData, look_up

__all__ = ["PROVIDERS", "Provider", "find_model", "key_variables", "openai_compatible"]


class Provider(Value, frozen=True, kw_only=True, gc=True):
    """Who serves models, as data.

    Attributes:
        name: as in ``"name/model-id"``, and ``Model.provider``.
        api: wire format of its models.
        base_url: of its API, with the version path for OpenAI-like APIs and without it for Anthropic.
        key_variables: environment variables for the key; the first that is set counts.
        token_variables: the same for tokens, which always go into the ``authorization`` header.
        needs_key: whether a request without a key is pointless.
        base_url_variable: environment variable that holds the address of the user's own instance.
        base_url_path: what follows that address.
        assume_thinking: whether a model of which nothing is known is taken for one that can think. Nothing is then
            sent about thinking unless a level is asked for.
        compat: departures of the server from its API, for all of its models; see ``Model.compat``.
    """

    name: str
    api: str = "openai-completions"
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    token_variables: tuple[str, ...] = ()
    needs_key: bool = True
    base_url_variable: str | None = None
    base_url_path: str = ""
    assume_thinking: bool = True
    compat: JsonObject | None = None

    def model(self, model_id: str) -> Model:
        """A model of the provider, with what the extra ``models`` knows about it.

        Of a model that is not known there, or without the extra, limits and prices are unknown (0), and it is taken for
        one that can do what it is asked for.

        Raises:
            ValueError: the address of the user's own instance is not set.
        """
        data = look_up(self.name, model_id) or ModelData()
        # Where nobody knows, nothing is said about thinking unless it is asked for, and images are sent if there are.
        unknown = data.reasoning is None and self.assume_thinking
        return Model(
            id=model_id,
            api=self.api,
            provider=self.name,
            base_url=self._address(),
            name=data.name,
            reasoning=data.reasoning or unknown,
            thinking_level_map={"off": None} if unknown else None,
            input=data.input or ("text", "image"),
            cost=data.cost,
            context_window=data.context_window,
            max_tokens=data.max_tokens,
            compat=self.compat,
        )

    def _address(self) -> str:
        if self.base_url_variable is None:
            return self.base_url
        address = os.environ.get(self.base_url_variable, self.base_url)
        if not address:
            raise ValueError(f"the address of your {self.name} instance is not known: set {self.base_url_variable}")
        return address.rstrip("/") + self.base_url_path


def find_model(name: str, *, base_url: str | None = None) -> Model:
    """The model of a name such as ``"anthropic/claude-sonnet-4-5"``.

    Args:
        name: a provider's, a slash, and the id of the model, which may have slashes of its own.
        base_url: of the server, where it is not the provider's own. A provider that is not known is then taken for
            one that speaks Chat Completions.

    Raises:
        ValueError: there is no such provider.
    """
    provider_name, slash, model_id = name.partition("/")
    provider = PROVIDERS.get(provider_name)
    if provider is None and base_url is not None:
        provider = openai_compatible(base_url, name=provider_name)
    if not (slash and model_id and provider):
        known = ", ".join(PROVIDERS)
        raise ValueError(f"a model is named 'provider/model-id', not {name!r}; the known providers are {known}")
    if base_url is not None:
        provider = msgspec.structs.replace(provider, base_url=base_url, base_url_variable=None)
    return provider.model(model_id)


def openai_compatible(base_url: str, *, name: str = "openai-compatible", compat: JsonObject | None = None) -> Provider:
    """A server that speaks Chat Completions, wherever it is.

    ``Agent(openai_compatible("http://gpu-box:8000/v1").model("qwen3-8b"))`` asks a model of it.

    Its key, if it wants one, is taken from ``StreamOptions.api_key``, the ``get_api_key`` hook, or the environment
    variable that is called as the provider is: ``GPU_BOX_API_KEY`` for the name ``gpu-box``.

    Args:
        base_url: with the version path, as in ``http://localhost:8000/v1``.
        name: for messages and keys.
        compat: its departures from what OpenAI's own server does, such as ``{"maxTokensField": "max_tokens"}``.
    """
    return Provider(name=name, base_url=base_url, needs_key=False, compat=compat)


_LIST: Final = (
    Provider(
        name="anthropic",
        api="anthropic-messages",
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        token_variables=("ANTHROPIC_AUTH_TOKEN",),
    ),
    Provider(
        name="azure",
        key_variables=("AZURE_OPENAI_API_KEY",),
        base_url_variable="AZURE_OPENAI_ENDPOINT",
        base_url_path="/openai/v1",
    ),
    Provider(name="cerebras", base_url="https://api.cerebras.ai/v1", key_variables=("CEREBRAS_API_KEY",)),
    Provider(name="deepseek", base_url="https://api.deepseek.com", key_variables=("DEEPSEEK_API_KEY",)),
    Provider(name="fireworks", base_url="https://api.fireworks.ai/inference/v1", key_variables=("FIREWORKS_API_KEY",)),
    Provider(name="groq", base_url="https://api.groq.com/openai/v1", key_variables=("GROQ_API_KEY",)),
    Provider(
        name="huggingface",
        base_url="https://router.huggingface.co/v1",
        key_variables=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    ),
    Provider(name="llama.cpp", base_url="http://127.0.0.1:8080/v1", needs_key=False),
    Provider(name="lmstudio", base_url="http://127.0.0.1:1234/v1", needs_key=False),
    Provider(name="mistral", base_url="https://api.mistral.ai/v1", key_variables=("MISTRAL_API_KEY",)),
    Provider(name="ollama", base_url="http://127.0.0.1:11434/v1", needs_key=False),
    Provider(name="openai", base_url="https://api.openai.com/v1", key_variables=("OPENAI_API_KEY",)),
    Provider(name="openrouter", base_url="https://openrouter.ai/api/v1", key_variables=("OPENROUTER_API_KEY",)),
    Provider(
        name="together",
        base_url="https://api.together.ai/v1",
        key_variables=("TOGETHER_API_KEY",),
        assume_thinking=False,  # it is told about thinking in either case
    ),
    Provider(name="vllm", base_url="http://127.0.0.1:8000/v1", needs_key=False),
    Provider(name="xai", base_url="https://api.x.ai/v1", key_variables=("XAI_API_KEY",)),
)

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({provider.name: provider for provider in _LIST})
"""The known providers by name."""


def key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables that may hold the key of a provider, known or not."""
    known = PROVIDERS.get(provider)
    if known is not None and known.key_variables:
        return known.key_variables
    word = "".join(char if char.isascii() and char.isalnum() else "_" for char in provider).upper()
    return (f"{word}_API_KEY",) if word.strip("_") else ()
