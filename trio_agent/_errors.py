"""Every exception the library raises, as one small tree.

* AgentError
  + AgentBusyError         a second run on an agent that already runs one
  + DeadlockError          a wait that could never end
  + TranscriptError        messages that cannot be read, or from which a run cannot start
  + ProtocolError
    - RemoteProtocolError  a model's stream made a move the protocol does not know
  + ModelError             a model did not answer; also ``RunResult.raise_for_error()``
    - MissingKeyError      there is no usable key for the provider
    - ModelConnectionError no connection, or it broke before the answer began
      * ModelTimeoutError  the server was silent for too long
    - ModelHTTPError       the server answered with an error status
      * RateLimitError
      * OverloadedError
      * ContextOverflowError
  + ToolError              raised by a tool: a polite failure, whose text the model gets
    - ToolArgumentsError   arguments that do not fit a tool's schema
  + ToolDefinitionError    a function, class or schema that cannot be a tool

A tool's or a model's failure is data in the transcript and never ends a run. No text holds a key. This module knows no
other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self

__all__ = [
    "AgentBusyError",
    "AgentError",
    "ContextOverflowError",
    "DeadlockError",
    "MissingKeyError",
    "ModelConnectionError",
    "ModelError",
    "ModelHTTPError",
    "ModelTimeoutError",
    "OverloadedError",
    "ProtocolError",
    "RateLimitError",
    "RemoteProtocolError",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolError",
    "TranscriptError",
]


class AgentError(Exception):
    """Base of all exceptions that the library itself raises."""


class AgentBusyError(AgentError, RuntimeError):
    """The agent is running: steer it, queue a follow-up, or wait until it is idle."""


class DeadlockError(AgentBusyError):
    """The call would wait for the end of a run that itself waits for the caller."""


class TranscriptError(AgentError, ValueError):
    """Messages that cannot be decoded, or a transcript from which a run cannot start."""


class ProtocolError(AgentError):
    """A stream of events broke the rules of the event protocol; only subclasses are raised."""


class RemoteProtocolError(ProtocolError):
    """The model's side of a stream made an illegal move, such as a delta for a block that was never opened."""


class ModelError(AgentError):
    """A model did not give a complete answer.

    Stream functions raise it (or a subclass) and the loop records its text in the final assistant message.

    Attributes:
        retryable: whether the same request may succeed when it is made again; ``None`` if only the text can tell.
        retry_after: seconds to wait before that, if the server named a time.
    """

    retryable: bool | None = None
    retry_after: float | None = None


class MissingKeyError(ModelError):
    """There is no usable key for the provider; the text names the environment variable to set."""

    retryable = False


class ModelConnectionError(ModelError):
    """No connection to the server could be made, or it broke before the answer began."""

    retryable = True


class ModelTimeoutError(ModelConnectionError):
    """The server could not be reached in time, or was silent for too long."""


class ModelHTTPError(ModelError):
    """The server answered with an error status. The text is what it said, readable, and begins with the status.

    Args:
        message: the text.
        status: of the response.
        provider: who sent it, as the model names it.
        retryable: whether the same request may succeed later.
        retry_after: seconds to wait before that, if the server named a time.
        request_id: by which the provider finds the request in its logs.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        provider: str,
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.provider = provider
        self.retryable = retryable
        self.retry_after = retry_after
        self.request_id = request_id

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...], dict[str, object]]:
        # Exceptions are copied and pickled by their positional arguments alone.
        return partial(type(self), status=self.status, provider=self.provider), self.args, self.__dict__


class RateLimitError(ModelHTTPError):
    """Too many requests or tokens, or a quota that is used up: ``retryable`` tells these apart."""


class OverloadedError(ModelHTTPError):
    """The provider has no capacity at the moment."""


class ContextOverflowError(ModelHTTPError):
    """The request does not fit into the model's context window; it fails again unless it is made shorter."""


class ToolError(AgentError):
    """Raise this in a tool to tell the model, in these words, that the call failed."""


class ToolArgumentsError(ToolError):
    """The arguments of a call do not fit the tool's schema; the text is what the model gets."""


class ToolDefinitionError(AgentError, TypeError):
    """A function, class or schema cannot be a tool; the text names the part and what to do."""
