"""Every exception the library raises, as one small tree.

* AgentError
  + AgentBusyError         a second run on an agent that already runs one
  + DeadlockError          a wait that could never end
  + TranscriptError        messages that cannot be read, or from which a run cannot start
  + ProtocolError
    - RemoteProtocolError  a model's stream made a move the protocol does not know
  + ModelError             a model did not answer; also ``RunResult.raise_for_error()``
  + ToolError              raised by a tool: a polite failure, whose text the model gets
    - ToolArgumentsError   arguments that do not fit a tool's schema
  + ToolDefinitionError    a function, class or schema that cannot be a tool

A tool's or a model's failure is data in the transcript and never ends a run. This module knows no other.
"""

__all__ = [
    "AgentBusyError",
    "AgentError",
    "DeadlockError",
    "ModelError",
    "ProtocolError",
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
    """


class ToolError(AgentError):
    """Raise this in a tool to tell the model, in these words, that the call failed."""


class ToolArgumentsError(ToolError):
    """The arguments of a call do not fit the tool's schema; the text is what the model gets."""


class ToolDefinitionError(AgentError, TypeError):
    """A function, class or schema cannot be a tool; the text names the part and what to do."""
