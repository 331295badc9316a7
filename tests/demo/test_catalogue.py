"""What a catalogue must look like, and what is said about one that does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trio_agent._demo import SHIPPED_CATALOGUE
from trio_agent._demo._catalogue import CatalogueError, Delivery, Product, Stock, load_catalogue, stock_of
from trio_agent.toolkit import truncate_head

Edit = Callable[[dict[str, Any]], object]


def product(**changes: object) -> Product:
    fields = {"id": "A", "name": "a", "category": "c", "price": "1.50", "on_hand": {"X": 3, "Y": 4}} | changes
    return msgspec.convert(fields, Product)


def test_the_shipped_catalogue_has_enough_products_and_is_too_long_for_one_read() -> None:
    catalogue = load_catalogue(SHIPPED_CATALOGUE)

    assert len(catalogue.products) >= 150
    assert truncate_head(SHIPPED_CATALOGUE.read_text(encoding="utf-8")).truncated
    stocks = [stock_of(item) for item in catalogue.products]
    assert any(stock.available for stock in stocks)
    assert any(not stock.available and stock.on_hand for stock in stocks)
    assert any(stock.next_delivery for stock in stocks)


def test_what_is_reserved_cannot_be_sold() -> None:
    assert stock_of(product(reserved=2)) == Stock(
        product_id="A", available=5, on_hand=7, reserved=2, next_delivery=None
    )
    assert stock_of(product(reserved=9)).available == 0
    assert stock_of(product(on_hand={})).available == 0


def test_the_next_delivery_is_the_first_one_expected() -> None:
    late, early = {"quantity": 1, "expected": "2026-03-01"}, {"quantity": 2, "expected": "2026-02-01"}

    assert stock_of(product(incoming=[late, early])).next_delivery == msgspec.convert(early, Delivery)


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda data: data.pop("products"), "missing required field `products`"),
        (lambda data: data["products"].clear(), r"length >= 1 - at `\$.products`"),
        (lambda data: data["products"][3].pop("id"), r"missing required field `id` - at `\$.products\[3\]`"),
        (lambda data: data["products"][3].update(id="TEN-001"), "two products have the id 'TEN-001'"),
        (lambda data: data["products"][3].update(reserved=-1), r"`int` >= 0 - at `\$.products\[3\].reserved`"),
        (lambda data: data["products"][3].update(price=-1), "product 'TEN-004' has no valid price: -1"),
        (lambda data: data["products"][3].update(price="NaN"), "product 'TEN-004' has no valid price: NaN"),
        (lambda data: data["products"][3]["on_hand"].update(XXX=1), "'TEN-004' lies in an unknown warehouse 'XXX'"),
    ],
)
def test_a_catalogue_that_is_wrong_is_refused_with_the_place(tmp_path: Path, edit: Edit, complaint: str) -> None:
    data = msgspec.json.decode(SHIPPED_CATALOGUE.read_bytes())
    edit(data)
    path = tmp_path / "changed.json"
    path.write_bytes(msgspec.json.encode(data))

    with pytest.raises(CatalogueError, match=complaint) as caught:
        load_catalogue(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"shop": "\xff"}'])
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(CatalogueError, match=r"broken\.json: "):
        load_catalogue(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="No such file or directory"):
        load_catalogue(tmp_path / "nowhere.json")
    with pytest.raises(CatalogueError, match="not a regular file"):
        load_catalogue(tmp_path)
