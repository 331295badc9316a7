"""Messages that wait for a run: steering for the next opportunity, follow-ups for when nothing else is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

from trio_agent._messages import AgentMessage
from trio_agent._run_transcript import Origin

__all__ = ["MessageQueue", "QueueMode", "Queues"]

QueueMode: TypeAlias = Literal["one-at-a-time", "all"]


class MessageQueue:
    """Messages in order; how many are taken at once is the mode's to say, when they are taken."""

    __slots__ = ("_messages", "_mode")

    def __init__(self, mode: QueueMode) -> None:
        self._messages: deque[AgentMessage] = deque()
        self.mode = mode

    @property
    def mode(self) -> QueueMode:
        """``one-at-a-time`` or ``all``."""
        return self._mode

    @mode.setter
    def mode(self, mode: QueueMode) -> None:
        if mode not in {"one-at-a-time", "all"}:
            raise ValueError(f"a queue's mode must be 'one-at-a-time' or 'all', not {mode!r}")
        self._mode: QueueMode = mode

    @property
    def waiting(self) -> tuple[AgentMessage, ...]:
        """All that waits, in order."""
        return tuple(self._messages)

    def append(self, message: AgentMessage) -> None:
        """Queue a message."""
        self._messages.append(message)

    def peek(self) -> tuple[AgentMessage, ...]:
        """What would be taken now."""
        return self.waiting if self._mode == "all" else self.waiting[:1]

    def take(self) -> Sequence[AgentMessage]:
        """Take what is to be taken now."""
        if not self._messages:
            return ()
        taken = self.peek()
        for _ in taken:
            self._messages.popleft()
        return taken

    def put_back(self, message: AgentMessage) -> None:
        """Put a message back to the front."""
        self._messages.appendleft(message)

    def clear(self) -> None:
        """Drop all that waits."""
        self._messages.clear()


class Queues:
    """The two queues of an agent, as the inbox of its runs."""

    __slots__ = ("follow_up", "steering")

    def __init__(self, steering_mode: QueueMode, follow_up_mode: QueueMode) -> None:
        self.steering = MessageQueue(steering_mode)
        self.follow_up = MessageQueue(follow_up_mode)

    def take_steering(self) -> Sequence[AgentMessage]:
        """Take steering messages."""
        return self.steering.take()

    def take_follow_ups(self) -> Sequence[AgentMessage]:
        """Take follow-ups."""
        return self.follow_up.take()

    def put_back(self, origin: Origin, message: AgentMessage, /) -> None:
        """Put a message back to the front of the queue it came from."""
        (self.steering if origin == "steering" else self.follow_up).put_back(message)

    def peek(self) -> tuple[AgentMessage, ...]:
        """What would be taken next: steering first."""
        return self.steering.peek() or self.follow_up.peek()

    def clear(self) -> None:
        """Drop all that waits."""
        self.steering.clear()
        self.follow_up.clear()
