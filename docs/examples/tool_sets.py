"""A tool set: methods that share state and resources, opened and closed with the agent.

Prints::

    shop_add, shop_total
    open
    {"items":2,"price":4.5}
    closed
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import trio

from trio_agent import Agent, ToolResultMessage, Toolset, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call


@asynccontextmanager
async def database() -> AsyncGenerator[dict[str, float]]:
    print("open")
    try:
        yield {"tea": 3.0, "milk": 1.5}
    finally:
        print("closed")


@dataclass
class Total:
    items: int
    price: float


class Basket(Toolset, prefix="shop_"):
    def __init__(self) -> None:
        self._items: list[str] = []

    async def open_resources(self, resources: AsyncExitStack) -> None:
        self._prices = await resources.enter_async_context(database())

    @tool
    async def add(self, product: str) -> None:
        """Put a product into the basket."""
        self._items.append(product)

    @tool
    async def total(self) -> Total:
        """What is in the basket, and what it costs."""
        return Total(len(self._items), sum(self._prices[item] for item in self._items))


async def main() -> None:
    basket = Basket()
    print(", ".join(each.name for each in basket.tools))

    adding = [tool_call("shop_add", product="tea"), tool_call("shop_add", product="milk")]
    scripted = ScriptedModel([Answer(calls=adding), Answer(calls=[tool_call("shop_total")]), "4.50"])
    async with Agent(scripted.model, tools=[basket], stream_fn=scripted) as agent:
        result = await agent.prompt("Tea and milk, please.")
        print([message.text for message in result.messages if isinstance(message, ToolResultMessage)][-1])


trio.run(main)
