"""What a model is and how it is asked: plain data, no callables, no I/O.

Uses the values of messages only; wire formats and providers read it. Prices are USD per million tokens, token counts
are tokens, and every time is float seconds.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from trio_agent._messages import Cost, JsonObject, JsonValue, Usage, Value, written

__all__ = [
    "CacheRetention",
    "CostTier",
    "Model",
    "ModelCost",
    "PromptCache",
    "StreamOptions",
    "ThinkingLevel",
]

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheRetention: TypeAlias = Literal["none", "short", "long"]


class CostTier(Value, gc=False, frozen=True, kw_only=True):
    """Prices of requests whose prompt is longer than a number of tokens; they then hold for the whole request.

    Attributes:
        input_tokens_above: the tier counts for prompts with more tokens than this.
        input: USD per million tokens.
        output: USD per million tokens.
        cache_read: USD per million tokens.
        cache_write: USD per million tokens.
    """

    input_tokens_above: int
    input: float
    output: float
    cache_read: float
    cache_write: float


class ModelCost(Value, gc=False, frozen=True, kw_only=True):
    """Prices in USD per million tokens.

    Attributes:
        input: of the prompt.
        output: of the answer.
        cache_read: of prompt tokens read from a cache.
        cache_write: of prompt tokens written to a cache.
        tiers: other prices for long prompts.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    tiers: tuple[CostTier, ...] | None = None


class PromptCache(Value, gc=False, frozen=True, kw_only=True):
    """How long the provider keeps a prompt, in seconds.

    Attributes:
        short: the usual time.
        long: the longest time that can be asked for.
    """

    short: float | None = None
    long: float | None = None


_FREE = ModelCost(input=0, output=0, cache_read=0, cache_write=0)


class Model(Value, gc=True, frozen=True, kw_only=True):
    """A language model.

    Attributes:
        id: sent to the provider.
        api: wire format, such as ``openai-completions``; picks the codec.
        provider: picks the key and some quirks.
        base_url: of the API, with the version path for OpenAI-like APIs and without it for Anthropic.
        reasoning: whether it can think; if not, thinking levels are ignored.
        input: what it takes, ``text`` and perhaps ``image``.
        cost: prices; zeros when unknown.
        context_window: tokens; 0 when unknown.
        max_tokens: longest answer in tokens; 0 when unknown.
        name: for people; the id when empty.
        thinking_level_map: the provider's word for a level, ``None`` for one it lacks.
        prompt_cache: how long prompts are kept.
        input_limits: of the provider, for applications; nothing here enforces them.
        headers: sent with every request; never shown in a repr.
        sampling_params: merged last into request bodies of OpenAI-like APIs.
        sampling_params_by_thinking_level: the same for one level.
        compat: departures of the server from its API.
        type: kind of model; ``chat`` when absent.
    """

    id: str
    api: str
    provider: str
    base_url: str = written("")
    reasoning: bool = written(False)
    input: tuple[Literal["text", "image"], ...] = written(("text",))
    cost: ModelCost = written(_FREE)
    context_window: int = written(0)
    max_tokens: int = written(0)
    name: str = written("")
    thinking_level_map: dict[str, str | None] | None = None
    prompt_cache: PromptCache | None = None
    input_limits: JsonValue = None
    headers: dict[str, str] | None = None
    sampling_params: JsonObject | None = None
    sampling_params_by_thinking_level: dict[str, JsonObject] | None = None
    compat: JsonValue = None
    type: str | None = None

    def price(self, usage: Usage) -> Usage:
        """The usage with its cost at this model's prices.

        The highest tier that the whole prompt exceeds sets the price of the whole request. Tokens cached for an hour
        cost twice the input price.
        """
        rates: ModelCost | CostTier = self.cost
        prompt = usage.input + usage.cache_read + usage.cache_write
        for tier in sorted(self.cost.tiers or (), key=lambda tier: tier.input_tokens_above):
            if prompt > tier.input_tokens_above:
                rates = tier
        long_lived = usage.cache_write_1h or 0
        parts = (
            rates.input * usage.input / 1e6,
            rates.output * usage.output / 1e6,
            rates.cache_read * usage.cache_read / 1e6,
            (rates.cache_write * (usage.cache_write - long_lived) + 2 * rates.input * long_lived) / 1e6,
        )
        cost = Cost(input=parts[0], output=parts[1], cache_read=parts[2], cache_write=parts[3], total=sum(parts))
        return Usage(
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            total_tokens=usage.total_tokens,
            cost=cost,
            cache_write_1h=usage.cache_write_1h,
            reasoning=usage.reasoning,
        )

    def __repr__(self) -> str:
        return f"Model(id={self.id!r}, api={self.api!r}, provider={self.provider!r}, base_url={self.base_url!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("api", self.api), ("provider", self.provider), ("base_url", self.base_url)]


class StreamOptions(Value, gc=True, frozen=True, kw_only=True):
    """How one request is to be made. Neither repr shows the key, the headers or the metadata.

    Attributes:
        api_key: of the provider; else a hook or the environment gives it.
        headers: win over all others; ``None`` takes a default one away.
        temperature: of sampling; 0 is a value.
        max_tokens: longest answer in tokens.
        sampling_params: merged last into request bodies of OpenAI-like APIs.
        cache_retention: how long the provider should keep the prompt.
        session_id: key of the prompt cache; not sent when the retention is ``none``.
        metadata: for the provider; only ``user_id`` is known.
        reasoning: thinking level; ``None`` for none. The loop sets it.
        thinking_budgets: tokens to think with, by level.
        tool_choice: ``auto``, ``none``, or what the API takes.
        timeout: longest silence of the server in seconds.
        max_retry_delay: longest wait in seconds that a server may ask for before a retry; 0 for no bound.
    """

    api_key: str | None = None
    headers: dict[str, str | None] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    sampling_params: JsonObject | None = None
    cache_retention: CacheRetention | None = None
    session_id: str | None = None
    metadata: JsonObject | None = None
    reasoning: ThinkingLevel | None = None
    thinking_budgets: dict[str, int] | None = None
    tool_choice: JsonValue = None
    timeout: float | None = None
    max_retry_delay: float | None = None

    def __repr__(self) -> str:
        return f"StreamOptions({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        secret = {"api_key", "headers", "metadata"}
        given = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "***" if name in secret else value) for name, value in given if value is not None]
