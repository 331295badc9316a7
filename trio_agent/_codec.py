"""MessageCodec: messages and events to JSON and back, with an application's own message types.

The good path is one typed msgspec call. Only what that call refuses is looked at again, slowly: an unknown role, which
is kept byte for byte, ``content: null`` of old transcripts, which reads as empty, and halves of surrogate pairs, which
cut model output and undecodable file names leave in texts. JavaScript writes them as escapes, and so does this module.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, Union, cast

import msgspec

from trio_agent._agent_events import AgentEnd, AgentEvent, MessageEnd, MessageStart
from trio_agent._errors import TranscriptError
from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    JsonObject,
    SystemMessage,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
)

__all__ = ["MessageCodec"]


# All that broken text raises: ValueError is the base of msgspec's, json's and Unicode's errors.
_REFUSED = (ValueError, RecursionError)
_ROLES = (SystemMessage, UserMessage, AssistantMessage, ToolResultMessage)


def _encode_unknown(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, UnknownMessage):
        return msgspec.Raw(value.raw)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _builtin_unknown(value: object) -> Any:  # noqa: ANN401
    return _parse(_encode_unknown(value))


def _encode(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        import json

        plain = msgspec.to_builtins(value, enc_hook=_builtin_unknown)
        return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode()


def _parse(data: bytes | msgspec.Raw) -> Any:  # noqa: ANN401
    # What msgspec takes, and surrogate escapes; both of them strict about numbers.
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        import json

        return json.loads(bytes(data), parse_constant=_finite, parse_float=_finite)


def _split_array(data: bytes | str) -> list[bytes]:
    # The items' own text, as unknown messages are to be kept as they are.
    try:
        return [bytes(item) for item in _raw_list.decode(data)]
    except msgspec.DecodeError:
        text = data if isinstance(data, str) else data.decode()
    import json

    if not isinstance(json.loads(text), list):
        raise ValueError("expected an array")
    items: list[bytes] = []
    decoder = json.JSONDecoder()
    start = _next_item(text, 0)
    while text[start] != "]":
        _, end = decoder.raw_decode(text, start)
        items.append(text[start:end].encode())
        start = _next_item(text, end)
    return items


def _next_item(text: str, position: int) -> int:
    # Past blanks and the bracket or comma before an item. The text is known to be an array.
    while text[position] in " \t\r\n[,":
        position += 1
    return position


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is no number in JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_unknown)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


@functools.cache
def _event_decoder() -> msgspec.json.Decoder[AgentEvent]:
    # Not at import: few programs read events, and it takes as long as many a module.
    return msgspec.json.Decoder(AgentEvent)


class MessageCodec:
    """Encodes and decodes messages and agent events.

    Args:
        own_types: the application's own message types: ``msgspec.Struct`` classes with ``tag_field="role"`` and a tag
            of their own. They join the union of message types.

    Raises:
        TypeError: a type is no tagged Struct, or its role is taken.

    A codec is immutable, thread safe, and cheap to keep.
    """

    __slots__ = ("_list", "_one", "_roles", "_union")

    def __init__(self, *own_types: type[msgspec.Struct]) -> None:
        types: tuple[type[msgspec.Struct], ...] = (*_ROLES, *own_types)
        self._roles = {_role_of(message_type): message_type for message_type in types}
        if len(self._roles) < len(types):
            names = ", ".join(f"{_role_of(t)!r} of {t.__name__}" for t in own_types)
            raise TypeError(f"two message types have the same role; given were {names}")
        self._union = Union[types]  # noqa: UP007
        self._one: msgspec.json.Decoder[Any] = msgspec.json.Decoder(self._union)
        self._list: msgspec.json.Decoder[Any] = msgspec.json.Decoder(list[self._union])  # type: ignore[name-defined]

    def encode(self, message: AgentMessage) -> bytes:
        """One message as JSON without a line end; an unknown one as it was read."""
        return _encode(message)

    def encode_list(self, messages: Iterable[AgentMessage]) -> bytes:
        """Messages as one JSON array."""
        messages = messages if isinstance(messages, (list, tuple)) else list(messages)
        try:
            return _encoder.encode(messages)
        except UnicodeEncodeError:
            return b"[" + b",".join([_encode(message) for message in messages]) + b"]"

    def encode_event(self, event: AgentEvent) -> bytes:
        """An agent event as JSON without a line end."""
        return _encode(event)

    def decode(self, data: bytes | str) -> AgentMessage:
        """One message.

        Returns:
            A message; an :class:`UnknownMessage` if nobody registered its role.

        Raises:
            TranscriptError: the JSON is broken, or is no message; the text names the place.
        """
        try:
            return cast("AgentMessage", self._one.decode(data))
        except _REFUSED as exc:
            return self._decode_leniently(data, exc)

    def decode_list(self, data: bytes | str) -> list[AgentMessage]:
        """Messages from one JSON array, each as :meth:`decode` reads it.

        Raises:
            TranscriptError: as for :meth:`decode`.
        """
        try:
            return cast("list[AgentMessage]", self._list.decode(data))
        except _REFUSED:
            pass
        try:
            items = _split_array(data)
        except _REFUSED as exc:
            raise TranscriptError(f"not a JSON array of messages: {exc}") from exc
        messages: list[AgentMessage] = []
        for index, item in enumerate(items):
            try:
                messages.append(self.decode(item))
            except TranscriptError as exc:
                raise TranscriptError(f"message {index}: {exc}") from exc
        return messages

    def decode_event(self, data: bytes | str) -> AgentEvent:
        """An agent event; messages of unknown roles in it are kept with their JSON value.

        Raises:
            TranscriptError: the JSON is broken, or is no agent event.
        """
        try:
            event = _event_decoder().decode(data)
        except _REFUSED as exc:
            event = self._decode_event_leniently(data, exc)
        # Events are typed for no particular application, so messages arrive as plain objects.
        if isinstance(event, (MessageStart, MessageEnd)):
            return type(event)(message=self._message(event.message))
        if isinstance(event, AgentEnd):
            return AgentEnd(messages=tuple([self._message(message) for message in event.messages]))
        return event

    def _message(self, plain: object) -> AgentMessage:
        return self.decode(_encode(plain))

    def _decode_leniently(self, data: bytes | str, error: Exception) -> AgentMessage:
        try:
            raw = data.encode() if isinstance(data, str) else data
            plain = _parse(raw)
        except _REFUSED as exc:
            raise TranscriptError(f"not a message: {exc}") from exc
        fields = cast("JsonObject", plain) if isinstance(plain, dict) else {}
        role = fields.get("role")
        if not isinstance(role, str):
            raise TranscriptError(f"not a message: {error}") from error
        message_type = self._roles.get(role)
        if message_type is None:
            return UnknownMessage(role, raw)
        if fields.get("content", ()) is None:
            fields["content"] = []
        try:
            return cast("AgentMessage", msgspec.convert(fields, message_type, str_keys=True))
        except msgspec.ValidationError as exc:
            raise TranscriptError(f"not a valid {role!r} message: {exc}") from exc

    def _decode_event_leniently(self, data: bytes | str, error: Exception) -> AgentEvent:
        try:
            plain = _parse(data.encode() if isinstance(data, str) else data)
            return cast("AgentEvent", msgspec.convert(plain, AgentEvent))
        except _REFUSED as exc:
            reason = exc if isinstance(exc, msgspec.ValidationError) else error
            raise TranscriptError(f"not an agent event: {reason}") from exc


def _role_of(message_type: type[msgspec.Struct]) -> str:
    config = getattr(message_type, "__struct_config__", None)
    if config is None or config.tag_field != "role" or not isinstance(config.tag, str):
        raise TypeError(f'{message_type!r} cannot be a message type: make it a Struct with tag_field="role" and a tag')
    return config.tag
