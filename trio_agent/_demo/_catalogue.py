"""The product catalogue: what is in the file, and how many of a product can be sold.

Plain data and arithmetic, checked when it is loaded so that nothing above needs to doubt it. The model does not use
this module: it reads the same file through its tool.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

__all__ = ["Catalogue", "CatalogueError", "Delivery", "Product", "Stock", "load_catalogue", "stock_of"]

Name: TypeAlias = Annotated[str, Meta(min_length=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class CatalogueError(Exception):
    """The catalogue cannot be used; the text says which file, where in it, and why."""


class Delivery(msgspec.Struct, frozen=True):
    """Pieces on their way to a warehouse."""

    quantity: Annotated[int, Meta(ge=1)]
    expected: date


class Product(msgspec.Struct, frozen=True):
    """One product.

    Attributes:
        id: identifies it.
        name: for people.
        category: for people.
        price: of one piece, in the currency of the catalogue.
        on_hand: pieces in each warehouse.
        reserved: pieces that are sold but still here.
        incoming: deliveries that are under way.
    """

    id: Name
    name: Name
    category: Name
    price: Decimal
    on_hand: dict[str, Count]
    reserved: Count = 0
    incoming: tuple[Delivery, ...] = ()


class Catalogue(msgspec.Struct, frozen=True):
    """What a shop sells and where it lies."""

    shop: Name
    currency: Name
    as_of: date
    warehouses: dict[str, str]
    products: Annotated[tuple[Product, ...], Meta(min_length=1)]


class Stock(msgspec.Struct, frozen=True):
    """What a stock check finds out.

    Attributes:
        product_id: of the product.
        available: pieces that can be sold now.
        on_hand: pieces in all warehouses together.
        reserved: pieces that are sold but still here.
        next_delivery: the first of the deliveries under way.
    """

    product_id: str
    available: int
    on_hand: int
    reserved: int
    next_delivery: Delivery | None


def load_catalogue(path: Path) -> Catalogue:
    """Read and check a catalogue.

    Raises:
        CatalogueError: there is no such file, or it is no catalogue.
    """
    try:
        if path.exists() and not path.is_file():
            # A pipe could be read once, but the agent is to read the file again.
            raise ValueError("not a regular file")
        catalogue = msgspec.json.decode(path.read_bytes(), type=Catalogue)
        _check(catalogue)
    except OSError as error:
        raise CatalogueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CatalogueError(f"{path}: {error}") from error
    return catalogue


def _check(catalogue: Catalogue) -> None:
    """What the types cannot say."""
    seen: set[str] = set()
    for product in catalogue.products:
        if product.id in seen:
            raise ValueError(f"two products have the id {product.id!r}")
        seen.add(product.id)
        if not product.price.is_finite() or product.price < 0:
            raise ValueError(f"product {product.id!r} has no valid price: {product.price}")
        if unknown := product.on_hand.keys() - catalogue.warehouses.keys():
            raise ValueError(f"product {product.id!r} lies in an unknown warehouse {min(unknown)!r}")


def stock_of(product: Product) -> Stock:
    """How many pieces of a product can be sold: what lies in the warehouses less what is reserved."""
    on_hand = sum(product.on_hand.values())
    return Stock(
        product_id=product.id,
        available=max(on_hand - product.reserved, 0),
        on_hand=on_hand,
        reserved=product.reserved,
        next_delivery=min(product.incoming, key=lambda delivery: delivery.expected, default=None),
    )
