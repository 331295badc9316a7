"""The stock check: a tool that computes from the catalogue, and a gauge of how many checks run at once."""

from __future__ import annotations

import zlib
from types import TracebackType

import trio

from trio_agent import Tool, ToolError, tool
from trio_agent._demo._catalogue import Catalogue, Stock, stock_of

__all__ = ["Gauge", "stock_check_tool"]


class Gauge:
    """Counts those who are inside its ``with`` block.

    Attributes:
        inside: how many are inside now.
        peak: how many were inside at most.
    """

    def __init__(self) -> None:
        self.inside = 0
        self.peak = 0

    def __enter__(self) -> None:
        self.inside += 1
        self.peak = max(self.peak, self.inside)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.inside -= 1


def stock_check_tool(catalogue: Catalogue, gauge: Gauge, *, pace: float = 1.0) -> Tool:
    """A tool named ``stock_check`` over the products of a catalogue.

    Args:
        catalogue: of the shop.
        gauge: is entered by every running check.
        pace: each check takes a tenth to half a second times this, as asking the warehouses would.
    """
    products = {product.id: product for product in catalogue.products}

    @tool
    async def stock_check(product_id: str) -> Stock:
        """Count how many pieces of a product can be sold now, and when more will arrive.

        Args:
            product_id: as in the catalogue.
        """
        with gauge:
            await trio.sleep(pace * _latency(product_id))
            if product_id not in products:
                raise ToolError(f"There is no product {product_id!r}")
            return stock_of(products[product_id])

    return stock_check


def _latency(product_id: str) -> float:
    # Of the id and not of chance, so that every run is the same.
    return 0.1 + zlib.crc32(product_id.encode()) % 400 / 1000
