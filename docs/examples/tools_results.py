"""What tools return, and how they fail.

Prints::

    weather: {"city":"Oslo","degrees":-3.5}
    chart: an image/png and a text
    stock: Enough. {'tea': 12, 'milk': 3}
    order: error: There is no table for 12; the largest has 8 seats.
    divide: error: float division by zero
    log: line 1 / line 2 / ... [Output truncated: the first 20 of 6191 characters are shown]
"""

from dataclasses import dataclass

import trio

from trio_agent import Agent, ImageContent, ToolError, ToolResult, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call

PNG = b"\x89PNG\r\n\x1a\n..."


@dataclass
class Weather:
    city: str
    degrees: float


@tool
async def weather(city: str) -> Weather:
    """A class in the annotation is the output schema, and the result is checked against it."""
    return Weather(city, -3.5)


@tool
async def chart() -> list[bytes | str]:
    """Texts and images, in order. Bytes of a PNG, JPEG, GIF or WebP are an image, other bytes are text."""
    return [PNG, "The last week."]


@tool
async def stock() -> ToolResult:
    """A ToolResult has details for people and programs, which no model sees, and more."""
    return ToolResult("Enough.", details={"tea": 12, "milk": 3})


@tool
async def order(people: int) -> str:
    """A ToolError tells the model, in its own words, what to do otherwise."""
    raise ToolError(f"There is no table for {people}; the largest has 8 seats.")


@tool
async def divide(a: float, b: float) -> float:
    """The text of any other exception goes to the model, its traceback to the log."""
    return a / b


@tool(max_result_chars=20)
async def log() -> str:
    """What is too long is cut after a line, with a notice."""
    return "\n".join(f"line {n}" for n in range(1, 701))


def show(message: ToolResultMessage) -> str:
    kinds = [block.mime_type if isinstance(block, ImageContent) else "text" for block in message.content]
    if len(kinds) > 1:
        return "an " + " and a ".join(kinds)
    lines = message.text.splitlines()
    text = message.text if len(lines) == 1 else f"{lines[0]} / {lines[1]} / ... {lines[-1]}"
    if message.is_error:
        return f"error: {text}"
    return f"{text} {message.details}" if message.details else text


async def main() -> None:
    calls = [
        tool_call("weather", city="Oslo"),
        tool_call("chart"),
        tool_call("stock"),
        tool_call("order", people=12),
        tool_call("divide", a=1, b=0),
        tool_call("log"),
    ]
    scripted = ScriptedModel([Answer(calls=calls), "Done."])
    agent = Agent(scripted.model, tools=[weather, chart, stock, order, divide, log], stream_fn=scripted)

    for message in (await agent.prompt("Go.")).messages:
        if isinstance(message, ToolResultMessage):
            print(f"{message.tool_name}: {show(message)}")


trio.run(main)
