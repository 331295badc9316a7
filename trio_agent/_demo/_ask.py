"""A question to a real model from the command line: to one of a provider, or to a small one on this machine."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from trio_agent import (
    Agent,
    AgentMessage,
    AssistantMessage,
    Hooks,
    JsonObject,
    Model,
    ModelError,
    RunResult,
    StreamOptions,
    TextContent,
    Tool,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    tool,
)
from trio_agent._demo._show import PATIENCE, show_run
from trio_agent.providers import find_model
from trio_agent.providers.local import LocalServer

__all__ = ["ask_local", "ask_provider"]


def ask_provider(question: str, name: str, *, base_url: str | None, as_json: bool) -> int:
    """Ask a model of a provider and show its answer on the standard output.

    Args:
        question: the prompt.
        name: of the model, as ``provider/model-id``.
        base_url: of a server other than the provider's own.
        as_json: write every event as one line of JSON.

    Returns:
        The exit status: 0, or 1 if the run failed, 2 if there is no such model, 130 after Ctrl-C.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """
    try:
        model = find_model(name, base_url=base_url)
    except ValueError as error:
        sys.stderr.write(f"trio-agent: {error}\n")
        return 2

    async def ask() -> int:
        async with Agent(model, closing_grace=PATIENCE) as agent:
            return await show_run(agent, question, as_json=as_json, notice=f"Asking {name}.", summary=_summary)

    return trio.run(ask)


def ask_local(question: str, *, gguf: Path | None, as_json: bool) -> int:
    """Ask a model on this machine, which has three tools, and show what it does on the standard output.

    Args:
        question: the prompt.
        gguf: file of the model; SmolLM2's if not given.
        as_json: write every event as one line of JSON.

    Returns:
        The exit status: 0, or 1 if the run failed, 2 if the model cannot be used, 130 after Ctrl-C.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """

    async def ask() -> int:
        try:
            # One slot for prompts that begin with the examples, and one for those without.
            async with LocalServer(gguf, slots=2) as server:
                notice = f"{server.model.id} answers, on this machine; the tools are add, letters and weekday."
                async with small_agent(server.model) as agent:
                    return await show_run(agent, question, as_json=as_json, notice=notice, summary=_summary)
        except ModelError as error:
            sys.stderr.write(f"trio-agent: {error}\n")
            return 2

    return trio.run(ask)


def small_agent(model: Model) -> Agent:
    """An agent that even a very small model can be: with few tools, and shown how they are called."""
    hooks = Hooks(transform_context=_with_examples)
    options = StreamOptions(temperature=0.0, max_tokens=64)
    return Agent(model, tools=_TOOLS, hooks=hooks, options=options, max_turns=4, closing_grace=PATIENCE)


def _summary(result: RunResult, seconds: float) -> str:
    usage = result.usage
    tokens = f"{usage.input + usage.cache_read + usage.cache_write} tokens in, {usage.output} out"
    cost = f", ${usage.cost.total:.4f}" if usage.cost.total else ""
    turns = "1 turn" if result.turns == 1 else f"{result.turns} turns"
    return f"{turns}, {tokens}{cost}, {seconds:.1f} s."


# -- what a small model is given ---------------------------------------------------------------------------------------


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def letters(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


@tool
async def weekday(date: dt.date) -> str:
    """Tell the day of the week."""
    return date.strftime("%A")


_TOOLS: Final[Sequence[Tool]] = (add, letters, weekday)

# A model of 135 million parameters calls tools if it has seen six calls, two of each tool. With one plain answer among
# them it gives plain answers only.
_EXAMPLES: Final[Sequence[tuple[str, str, JsonObject, str]]] = (
    ("How many letters has garden?", "letters", {"word": "garden"}, "6"),
    ("What is 4 plus 9?", "add", {"a": 4, "b": 9}, "13"),
    ("Which day was 2024-02-29?", "weekday", {"date": "2024-02-29"}, "Thursday"),
    ("How long is the word sky?", "letters", {"word": "sky"}, "3"),
    ("Add 250 and 60", "add", {"a": 250, "b": 60}, "310"),
    ("What weekday is 1999-12-31?", "weekday", {"date": "1999-12-31"}, "Friday"),
)


async def _with_examples(messages: Sequence[AgentMessage]) -> Sequence[AgentMessage]:
    # Once it has a result, the model is to say it and not to call on.
    if isinstance(messages[-1], ToolResultMessage):
        return messages
    shown: list[AgentMessage] = []
    for number, (question, name, arguments, result) in enumerate(_EXAMPLES):
        call = ToolCall(id=f"example{number}", name=name, arguments=arguments)
        shown += [
            UserMessage(content=question, timestamp=0),
            AssistantMessage(
                content=(call,),
                api="",
                provider="",
                model="",
                usage=Usage.zero(),
                stop_reason="toolUse",
                timestamp=0,
            ),
            ToolResultMessage(
                tool_call_id=call.id,
                tool_name=name,
                content=(TextContent(text=result),),
                is_error=False,
                timestamp=0,
            ),
        ]
    return [messages[0], *shown, *messages[1:]]
