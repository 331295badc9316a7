"""Tool-call ids that a server takes: its characters, its length, and each of them once in a request.

Ids of stored messages are never changed; a request is built with a map of its own. The map depends only on what came
before in the transcript, so a longer conversation keeps its prefix, and with it the provider's prompt cache.
"""

from __future__ import annotations

import re
from typing import Final

from trio_agent._messages import Value

__all__ = ["CallIdMap", "CallIdRule", "short_hash"]

_FOREIGN_CHARACTERS: Final = re.compile(r"[^a-zA-Z0-9_-]")
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_MASK: Final = 0xFFFFFFFF


def short_hash(text: str) -> str:
    """A short stable name for a text: 64 bits in base 36, over its UTF-16 units (pi's ``shortHash``)."""
    h1, h2 = 0xDEADBEEF, 0x41C6CE57
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        h1 = (h1 ^ unit) * 2654435761 & _MASK
        h2 = (h2 ^ unit) * 1597334677 & _MASK
    h1 = ((h1 ^ h1 >> 16) * 2246822507 ^ (h2 ^ h2 >> 13) * 3266489909) & _MASK
    h2 = ((h2 ^ h2 >> 16) * 2246822507 ^ (h1 ^ h1 >> 13) * 3266489909) & _MASK
    return _base36(h2) + _base36(h1)


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


class CallIdRule(Value, frozen=True, gc=False, kw_only=True):
    """What a server demands of an id.

    Attributes:
        max_length: longest id; 0 for no bound.
        exact_length: the only length, of letters and digits; 0 for no such demand.
        plain: letters, digits, ``_`` and ``-`` only.
        pair_length: longest id made of a Responses id, which is a call id and an item id joined by a bar; 0 if such
            an id is treated like the others.
    """

    max_length: int = 0
    exact_length: int = 0
    plain: bool = False
    pair_length: int = 0

    def apply(self, call_id: str) -> str:
        """The id as the server takes it; not yet unique."""
        if self.exact_length:
            fits = len(call_id) == self.exact_length and call_id.isascii() and call_id.isalnum()
            return call_id if fits else short_hash(call_id)[: self.exact_length].ljust(self.exact_length, "0")
        if self.pair_length and "|" in call_id:
            return self._join(call_id)
        plain = _plain(call_id) if self.plain else call_id
        if self.max_length and len(plain) > self.max_length:
            return _shorten(plain, call_id, self.max_length)
        return plain or short_hash(call_id)

    def _join(self, call_id: str) -> str:
        whole = _plain(call_id)
        if len(whole) <= self.pair_length:
            return whole or short_hash(call_id)
        return _shorten(_plain(call_id.partition("|")[0]), call_id, self.pair_length)


def _plain(call_id: str) -> str:
    # Some servers refuse an underscore at the end; one that was sent so is left alone.
    plain = _FOREIGN_CHARACTERS.sub("_", call_id)
    return plain if plain == call_id else plain.rstrip("_")


def _shorten(text: str, whole: str, length: int) -> str:
    # The tail is a hash of the whole: ids that differ only behind the cut stay different.
    tail = short_hash(whole)[:8]
    return f"{text[: length - 1 - len(tail)]}_{tail}"


class CallIdMap:
    """Gives each call of a request its id.

    Args:
        rule: of the server.
    """

    __slots__ = ("_rule", "_used")

    def __init__(self, rule: CallIdRule) -> None:
        self._rule = rule
        self._used: set[str] = set()

    def assign(self, call_id: str, *, native: bool) -> str:
        """The id that the next call of the transcript has in this request.

        Args:
            call_id: the stored id.
            native: it came from the very model that is asked; then it is only made unique.
        """
        wanted = call_id if native and call_id else self._rule.apply(call_id or "call")
        unique, attempt = wanted, 1
        while unique in self._used:
            attempt += 1
            unique = self._variant(wanted, call_id, attempt)
        self._used.add(unique)
        return unique

    def _variant(self, wanted: str, call_id: str, attempt: int) -> str:
        tail = short_hash(f"{call_id}#{attempt}")
        if self._rule.exact_length:
            return tail[: self._rule.exact_length].ljust(self._rule.exact_length, "0")
        limit = self._rule.max_length or len(wanted) + 9
        return f"{wanted[: limit - 9]}_{tail[:8]}"
