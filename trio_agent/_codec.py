"""MessageCodec: messages and events to JSON and back, with an application's own message types.

The good path is one typed msgspec call. Only what that call refuses is looked at again, slowly: an unknown role, which
is kept byte for byte, and ``content: null`` of old transcripts, which reads as empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union, cast

import msgspec

from trio_agent._agent_events import AgentEnd, AgentEvent, MessageEnd, MessageStart
from trio_agent._errors import TranscriptError
from trio_agent._messages import (
    AgentMessage,
    AssistantMessage,
    SystemMessage,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
)

__all__ = ["MessageCodec"]


_ROLES = (SystemMessage, UserMessage, AssistantMessage, ToolResultMessage)


class _Peek(msgspec.Struct):
    role: str


def _encode_unknown(value: object) -> Any:  # noqa: ANN401
    if isinstance(value, UnknownMessage):
        return msgspec.Raw(value.raw)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_encode_unknown)
_peek = msgspec.json.Decoder(_Peek)
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_events = msgspec.json.Decoder(AgentEvent)


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
        return _encoder.encode(message)

    def encode_list(self, messages: Iterable[AgentMessage]) -> bytes:
        """Messages as one JSON array."""
        return _encoder.encode(messages if isinstance(messages, (list, tuple)) else list(messages))

    def encode_event(self, event: AgentEvent) -> bytes:
        """An agent event as JSON without a line end."""
        return _encoder.encode(event)

    def decode(self, data: bytes | str) -> AgentMessage:
        """One message.

        Returns:
            A message; an :class:`UnknownMessage` if nobody registered its role.

        Raises:
            TranscriptError: the JSON is broken, or is no message; the text names the place.
        """
        try:
            return cast("AgentMessage", self._one.decode(data))
        except msgspec.DecodeError as exc:
            return self._decode_leniently(data.encode() if isinstance(data, str) else data, exc)

    def decode_list(self, data: bytes | str) -> list[AgentMessage]:
        """Messages from one JSON array, each as :meth:`decode` reads it.

        Raises:
            TranscriptError: as for :meth:`decode`.
        """
        try:
            return cast("list[AgentMessage]", self._list.decode(data))
        except msgspec.DecodeError:
            pass
        try:
            items = _raw_list.decode(data)
        except msgspec.DecodeError as exc:
            raise TranscriptError(f"not a JSON array of messages: {exc}") from exc
        # A Raw refers into the whole input, so an unknown message must take its own bytes.
        return [self.decode(bytes(item)) for item in items]

    def decode_event(self, data: bytes | str) -> AgentEvent:
        """An agent event; messages of unknown roles in it are kept with their JSON value.

        Raises:
            TranscriptError: the JSON is broken, or is no agent event.
        """
        try:
            event = _events.decode(data)
        except msgspec.DecodeError as exc:
            raise TranscriptError(f"not an agent event: {exc}") from exc
        # Events are typed for no particular application, so messages arrive as plain objects.
        if isinstance(event, (MessageStart, MessageEnd)):
            return type(event)(message=self._message(event.message))
        if isinstance(event, AgentEnd):
            return AgentEnd(messages=tuple([self._message(message) for message in event.messages]))
        return event

    def _message(self, plain: object) -> AgentMessage:
        return self.decode(msgspec.json.encode(plain))

    def _decode_leniently(self, data: bytes, error: msgspec.DecodeError) -> AgentMessage:
        try:
            role = _peek.decode(data).role
        except msgspec.DecodeError:
            raise TranscriptError(f"not a message: {error}") from error
        message_type = self._roles.get(role)
        if message_type is None:
            return UnknownMessage(role, data)
        plain = msgspec.json.decode(data)
        if "content" in plain and plain["content"] is None:
            plain["content"] = []
            try:
                return cast("AgentMessage", msgspec.convert(plain, message_type))
            except msgspec.ValidationError as exc:
                error = exc
        raise TranscriptError(f"not a valid {role!r} message: {error}") from error


def _role_of(message_type: type[msgspec.Struct]) -> str:
    config = getattr(message_type, "__struct_config__", None)
    if config is None or config.tag_field != "role" or not isinstance(config.tag, str):
        raise TypeError(f'{message_type!r} cannot be a message type: make it a Struct with tag_field="role" and a tag')
    return config.tag
