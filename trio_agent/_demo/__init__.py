"""The built-in demonstration: a clerk with a scripted model answers what a shop has in stock.

All but the model is real: the catalogue is a file, the ``read`` tool reads it in portions, every stock check is a call
of a function over its data, and all checks run at once. A customer of the library that uses public doors only.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import trio

from trio_agent import Agent, RunResult, ToolResultMessage
from trio_agent._demo._catalogue import Catalogue, CatalogueError, load_catalogue
from trio_agent._demo._scripted import instructions, scripted_model
from trio_agent._demo._show import PATIENCE, show_run
from trio_agent._demo._stock import Gauge, stock_check_tool
from trio_agent.toolkit import read_tool

__all__ = ["demonstrate"]

QUESTION: Final = "What is in stock?"
SHIPPED_CATALOGUE: Final = Path(__file__).with_name("catalogue.json")
_NOTICE: Final = "The model is scripted and works offline; the file, the tools and the concurrency are real."


def demonstrate(question: str | None, *, catalogue: Path | None, as_json: bool) -> int:
    """Run the demonstration and show it on the standard output.

    Args:
        question: for the clerk; naming a category asks for its products only.
        catalogue: the file to read instead of the shipped one.
        as_json: write every event as one line of JSON.

    Returns:
        The exit status: 0, or 1 if the run failed, 2 if the catalogue cannot be used, 130 after Ctrl-C.

    Raises:
        BrokenPipeError: nobody reads the standard output any more.
    """
    # Resolved, as the tool refuses links that lead out of the folder it may read.
    path = (catalogue or SHIPPED_CATALOGUE).resolve()
    try:
        shop = load_catalogue(path)
    except CatalogueError as error:
        sys.stderr.write(f"trio-agent: {error}\n")
        return 2
    gauge = Gauge()
    agent = make_agent(shop, path, gauge)
    show = partial(show_run, as_json=as_json, notice=_NOTICE, summary=partial(_summary, gauge))
    return trio.run(show, agent, question or QUESTION)


def make_agent(shop: Catalogue, path: Path, gauge: Gauge, *, pace: float = 1.0) -> Agent:
    """The clerk; ``pace`` stretches the time that streaming and checking take."""
    scripted = scripted_model(pace=pace)
    return Agent(
        scripted.model,
        system_prompt=instructions(path.name),
        tools=[read_tool(path.parent), stock_check_tool(shop, gauge, pace=pace)],
        stream_fn=scripted,
        closing_grace=PATIENCE,
    )


def _summary(gauge: Gauge, result: RunResult, seconds: float) -> str:
    calls = sum(isinstance(message, ToolResultMessage) for message in result.messages)
    return (
        f"{result.turns} turns, {calls} tool calls, at most {gauge.peak} stock checks at once, {seconds:.1f} s, "
        "with a scripted model."
    )
