"""CallDeltas: which call of a Chat Completions answer a fragment belongs to.

The index decides where there is one, else the id, else the last call goes on. Ids and names are set once: servers
repeat them in every chunk, or send them empty from the second chunk on.
"""

from __future__ import annotations

import msgspec

from trio_agent._block import parse_arguments
from trio_agent._messages import JsonValue
from trio_agent.wire._answer import Answer, OpenBlock
from trio_agent.wire._json import quote

__all__ = ["CallDelta", "CallDeltas"]


class _Function(msgspec.Struct, gc=False):
    name: JsonValue = None
    arguments: JsonValue = None


class CallDelta(msgspec.Struct, gc=False):
    """A fragment of a call, with the fields that servers send."""

    index: JsonValue = None
    id: JsonValue = None
    function: _Function | None = None


class CallDeltas:
    """Gathers the fragments of an answer's calls.

    Args:
        answer: where the calls go.
    """

    __slots__ = ("_answer", "_by_id", "_by_index", "_last", "_wire_ids")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._by_index: dict[int, OpenBlock] = {}
        self._by_id: dict[str, OpenBlock] = {}
        self._wire_ids: dict[int, str] = {}
        self._last: OpenBlock | None = None

    def add(self, delta: CallDelta) -> None:
        """Take one fragment."""
        function = delta.function
        call_id = delta.id if isinstance(delta.id, str) else ""
        name, arguments = "", ""
        if function is not None:
            name = function.name if isinstance(function.name, str) else ""
            text = function.arguments
            # Most stream argument text; some send an object.
            arguments = text if isinstance(text, str) else "" if text is None else quote(text)
        index = delta.index if type(delta.index) is int else None
        block = self._find(index, call_id)
        if block is None or self._is_another(block, call_id, name, arguments):
            block = self._answer.open("toolcall", call_id=call_id, name=name)
            self._remember(block, index, call_id)
        else:
            if call_id and not block.id:
                self._answer.name_call(block, call_id)
                self._remember(block, index, call_id)
            if name and not block.name:
                block.name = self._answer.tool_name(name)
        self._last = block
        self._answer.add(block, arguments)

    def _find(self, index: int | None, call_id: str) -> OpenBlock | None:
        if index is not None:
            return self._by_index.get(index)
        if call_id:
            known = self._by_id.get(call_id)
            # The id may come late to a call that was begun without one.
            return known if known is not None or self._last is None or self._last.id else self._last
        return self._last

    def _is_another(self, block: OpenBlock, call_id: str, name: str, arguments: str) -> bool:
        if not name or not block.name:
            return False
        wire_id = self._wire_ids.get(block.index)
        if call_id and wire_id and call_id != wire_id:
            # LiteLLM gives every parallel call of Ollama the index 0.
            return True
        # Without ids, or with one for all: a call begins where arguments begin anew after a complete object.
        begins = arguments.lstrip().startswith("{") or not (arguments or call_id or self._is_named(block, name))
        return begins and _is_complete(block)

    def _is_named(self, block: OpenBlock, name: str) -> bool:
        return self._answer.tool_name(name) == block.name

    def _remember(self, block: OpenBlock, index: int | None, call_id: str) -> None:
        if index is not None:
            self._by_index[index] = block
        if call_id:
            self._by_id.setdefault(call_id, block)
            self._wire_ids[block.index] = call_id


def _is_complete(block: OpenBlock) -> bool:
    last = next((part for part in reversed(block.parts) if part and not part.isspace()), "")
    return last.rstrip().endswith("}") and parse_arguments(block.text)[1] is None
