"""Thinking levels: which of them a model has, and what it calls them.

A level that a model lacks becomes the next higher one that it has, for an application asks for at least so much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trio_agent._models import Model, StreamOptions, ThinkingLevel

__all__ = ["adjust_for_budget", "clamp_level", "level_of", "supported_levels", "thinking_budget", "word_for"]

_LEVELS: Final[tuple[ThinkingLevel, ...]] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
_ONLY_IF_MAPPED: Final = frozenset({"xhigh", "max"})
_BUDGETS: Final[Mapping[str, int]] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
_MIN_ANSWER_TOKENS: Final = 1024


def supported_levels(model: Model) -> tuple[ThinkingLevel, ...]:
    """The levels that a model has, in ascending order."""
    if not model.reasoning:
        return ("off",)
    words = model.thinking_level_map or {}
    defaults = {level: None if level in _ONLY_IF_MAPPED else level for level in _LEVELS}
    return tuple([level for level in _LEVELS if words.get(level, defaults[level]) is not None])


def clamp_level(model: Model, level: ThinkingLevel) -> ThinkingLevel:
    """The level itself if the model has it, else the next higher, else the next lower one."""
    supported = supported_levels(model)
    wanted = _LEVELS.index(level)
    enough: list[ThinkingLevel] = [candidate for candidate in supported if _LEVELS.index(candidate) >= wanted]
    if enough:
        return enough[0]
    return supported[-1] if supported else level


def level_of(model: Model, options: StreamOptions) -> ThinkingLevel:
    """The level at which a request thinks; ``off`` where none is asked for or the model has none."""
    level = options.reasoning or "off"
    return clamp_level(model, level) if model.reasoning and level != "off" else "off"


def word_for(model: Model, level: ThinkingLevel) -> str:
    """The provider's word for a level that the model has."""
    return (model.thinking_level_map or {}).get(level) or level


def thinking_budget(level: ThinkingLevel, options: StreamOptions) -> int:
    """Tokens to think with at a level, for models that are given a number."""
    known = "high" if level in _ONLY_IF_MAPPED else level
    return {**_BUDGETS, **(options.thinking_budgets or {})}.get(known, 0)


def adjust_for_budget(max_tokens: int, model_limit: int, budget: int) -> tuple[int, int]:
    """Room for both: the longest answer with the thinking on top of it, and the thinking within that."""
    total = min(max_tokens + budget, model_limit) if model_limit else max_tokens + budget
    return total, min(budget, max(0, total - _MIN_ANSWER_TOKENS)) if total <= budget else budget
