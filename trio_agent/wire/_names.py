"""Tool names that a server takes, and the way back.

Servers refuse a whole request for one tool whose name has a dot or is too long. Such a tool goes by an alias on the
wire, and only there: the decoder is given the aliases of its request and puts the tool's own name into the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from trio_agent.wire._ids import short_hash

__all__ = ["ToolNames"]

_ACCEPTED: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_FOREIGN_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_ALIAS_LENGTH: Final = 64


class ToolNames:
    """The names of one request.

    Args:
        declared: names of the declared tools; no alias takes one of them.
    """

    __slots__ = ("_on_wire", "_taken", "aliases")

    def __init__(self, declared: Iterable[str]) -> None:
        self._taken = {name for name in declared if _ACCEPTED.match(name)}
        self._on_wire: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        """From a name on the wire to the tool's own, for those that differ."""

    def on_wire(self, name: str) -> str:
        """The name by which the server knows the tool: the same in every request that declares it."""
        if _ACCEPTED.match(name):
            return name
        alias = self._on_wire.get(name)
        if alias is None:
            alias, attempt = _alias(name, ""), 1
            while alias in self._taken:
                attempt += 1
                alias = _alias(name, f"#{attempt}")
            self._taken.add(alias)
            self._on_wire[name] = alias
            self.aliases[alias] = name
        return alias


def _alias(name: str, salt: str) -> str:
    tail = short_hash(name + salt)[:8]
    readable = _FOREIGN_CHARACTERS.sub("_", name)[: _ALIAS_LENGTH - 9]
    return f"{readable or 'tool'}_{tail}"
