"""A tool made of a function, and what it does with what models send.

Prints::

    reserve: Reserve a table.
    {'type': 'string', 'description': "on the guest's name"}
    {'type': 'integer', 'minimum': 1, 'description': 'how many come'}
    {'type': 'string', 'enum': ['window', 'garden', 'bar'], 'default': 'window'}
    Table(guest='Ada', people=4, place=<Place.GARDEN: 'garden'>)
    Validation failed for tool "reserve":
      - people: expected >= 1
      - place: expected one of ["window","garden","bar"]

    Received arguments:
    {
      "guest": "Ada",
      "people": 0,
      "place": "roof"
    }
"""

import enum
from dataclasses import dataclass
from typing import Annotated

import trio
from msgspec import Meta

from trio_agent import ToolArgumentsError, tool


class Place(enum.Enum):
    WINDOW = "window"
    GARDEN = "garden"
    BAR = "bar"


@dataclass
class Table:
    guest: str
    people: int
    place: Place


@tool
async def reserve(guest: str, people: Annotated[int, Meta(ge=1)], place: Place = Place.WINDOW) -> Table:
    """Reserve a table.

    Args:
        guest: on the guest's name
        people: how many come
    """
    return Table(guest, people, place)


async def main() -> None:
    print(f"{reserve.name}: {reserve.description}")
    for schema in reserve.parameters["properties"].values():
        print(schema)

    # A tool can be called like its function; no model is needed to test it.
    print(await reserve("Ada", people=4, place=Place.GARDEN))

    # What an agent does with a call. The model wrote a text for a number, and null for what it does not want.
    bound = reserve.bind({"guest": "Ada", "people": "4", "place": None})
    assert bound.arguments == {"guest": "Ada", "people": 4}
    try:
        reserve.bind({"guest": "Ada", "people": 0, "place": "roof"})
    except ToolArgumentsError as exc:
        print(exc)


trio.run(main)
