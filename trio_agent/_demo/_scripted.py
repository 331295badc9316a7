"""The scripted model of the demonstration: a clerk that knows one job and computes all it says.

It sees what a real model would see, the messages of the request, and decides by them alone: read the catalogue, read on
as the tool's note says, check the stock of every product it has read about, and add up what the checks have found. Not
one number is written here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from trio_agent import JsonObject, Message, SystemMessage, TextContent, ToolCall, ToolResultMessage, UserMessage
from trio_agent._demo._catalogue import Stock
from trio_agent.testing import Answer, ScriptedModel, ScriptedRequest

__all__ = ["clerk", "instructions", "scripted_model"]

_CATALOGUE: Final = re.compile(r"^Catalogue file: (.+)$", re.MULTILINE)
_NOTE: Final = re.compile(r"\n\n\[[^\n]* Use offset=(\d+) to continue\.\]\Z")
_LISTED: Final = 5
_CHUNK: Final = 16
_DELAY: Final = 0.008


def instructions(catalogue: str) -> str:
    """The system prompt."""
    return (
        "You are the clerk of a shop. Read the catalogue, check the stock of each product that the customer asks "
        f"about, and answer in a few lines.\nCatalogue file: {msgspec.json.encode(catalogue).decode()}"
    )


def scripted_model(*, pace: float = 1.0) -> ScriptedModel:
    """A model that answers as the clerk, for as long as it is asked.

    Args:
        pace: stretches the time that an answer takes to stream; 0 for none.
    """
    model = ScriptedModel()

    def answer(request: ScriptedRequest) -> Answer:
        model.extend([answer])
        said = clerk(request)
        # Hundreds of calls are not to take longer than a few lines of text.
        delay = pace * _DELAY / max(1, len(said.calls) / 8)
        return dataclasses.replace(said, chunk_size=_CHUNK, delay=delay)

    model.extend([answer])
    return model


class _Listed(msgspec.Struct, frozen=True):
    """What the clerk notes of a product in the catalogue."""

    id: str
    name: str
    category: str
    price: Decimal


class _Listing(msgspec.Struct, frozen=True):
    shop: str
    currency: str
    products: tuple[_Listed, ...]


def clerk(request: ScriptedRequest) -> Answer:
    """The next answer, whatever the request."""
    messages = request.messages
    question, results = _conversation(messages)
    portions = [result for result in results if result.tool_name == "read"]
    checks = [result for result in results if result.tool_name == "stock_check"]
    if not portions:
        return Answer(text="I will read the catalogue first.\n", calls=[_read(messages, number=1, offset=None)])
    if portions[-1].is_error:
        return Answer(text=f"I could not read the catalogue: {portions[-1].text}\n")
    if (note := _NOTE.search(portions[-1].text)) is not None:
        return Answer(calls=[_read(messages, number=len(portions) + 1, offset=int(note[1]))])
    try:
        listing = msgspec.json.decode("\n".join(map(_lines, portions)), type=_Listing)
    except msgspec.DecodeError as error:
        return Answer(text=f"I cannot make sense of the catalogue: {error}. It says: {portions[0].text[:200]}\n")
    wanted = _wanted(question, listing.products)
    if not checks:
        calls = [_check(product, number) for number, product in enumerate(wanted, 1)]
        return Answer(text=f"That makes {len(calls)} products. I will check them all at once.\n", calls=calls)
    return Answer(text="".join(_report(listing, wanted, checks)))


def _conversation(messages: Sequence[Message]) -> tuple[str, list[ToolResultMessage]]:
    """The last question and the results since then."""
    question, results = "", list[ToolResultMessage]()
    for message in messages:
        match message:
            case UserMessage(content=str(question)):
                results = []
            case UserMessage(content=tuple(blocks)):
                question = "".join(block.text for block in blocks if isinstance(block, TextContent))
                results = []
            case ToolResultMessage():
                results.append(message)
            case _:
                pass
    return question, results


def _read(messages: Sequence[Message], *, number: int, offset: int | None) -> ToolCall:
    arguments: JsonObject = {"path": _catalogue_file(messages)}
    if offset is not None:
        arguments["offset"] = offset
    return ToolCall(id=f"read-{number}", name="read", arguments=arguments)


def _catalogue_file(messages: Sequence[Message]) -> str:
    for message in messages:
        if isinstance(message, SystemMessage) and (found := _CATALOGUE.search(str(message.content))) is not None:
            return msgspec.json.decode(found[1], type=str)
    raise ValueError("the system prompt names no catalogue file")


def _lines(portion: ToolResultMessage) -> str:
    return _NOTE.sub("", portion.text)


def _wanted(question: str, products: Sequence[_Listed]) -> Sequence[_Listed]:
    """The products of the categories that the question names; all if it names none."""
    asked = _words(question)
    return [product for product in products if asked & _words(product.category)] or products


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w{4,}", text.casefold())}


def _check(product: _Listed, number: int) -> ToolCall:
    return ToolCall(id=f"check-{number}", name="stock_check", arguments={"product_id": product.id})


def _report(listing: _Listing, products: Sequence[_Listed], checks: Sequence[ToolResultMessage]) -> Iterator[str]:
    by_id = {product.id: product for product in products}
    found = [msgspec.json.decode(check.text, type=Stock) for check in checks if not check.is_error]
    stocks = [(by_id[stock.product_id], stock) for stock in found if stock.product_id in by_id]
    here = [(product, stock) for product, stock in stocks if stock.available]
    gone = [(product, stock) for product, stock in stocks if not stock.available]
    pieces = sum(stock.available for _, stock in here)
    value = sum((product.price * stock.available for product, stock in here), Decimal(0))
    yield f"{listing.shop}: {len(here)} of {len(products)} products are in stock, "
    yield f"{pieces:,} pieces worth {listing.currency} {value:,.2f}.\n\n"
    for category in dict.fromkeys(product.category for product in products):
        of_category = [stock for product, stock in stocks if product.category == category]
        available = [stock.available for stock in of_category if stock.available]
        yield f"  {category:<16} {len(available):>3} of {len(of_category):>3}  {sum(available):>6,} pieces\n"
    scarce = sorted((stock.available, product.name) for product, stock in here)
    if scarce:
        yield "\nLast pieces:\n"
        yield from (f"  {count:>3} x {name}\n" for count, name in scarce[:_LISTED])
    coming = sorted(
        (stock.next_delivery.expected, product.name, stock.next_delivery.quantity)
        for product, stock in gone
        if stock.next_delivery is not None
    )
    if gone:
        yield f"\nOut of stock: {len(gone)}, of which {len(coming)} on their way{':' if coming else '.'}\n"
    yield from (f"  {day}  {count:>3} x {name}\n" for day, name, count in coming[:_LISTED])
    if len(coming) > _LISTED:
        yield f"  and {len(coming) - _LISTED} more\n"
    if len(found) < len(checks):
        yield f"\nFailed checks: {len(checks) - len(found)}\n"
