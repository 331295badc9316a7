"""The loop: turns of a request, its answer and the results of its tools, until there is nothing more to do.

It reads from top to bottom like the life of a run:

    agent_start
      turn_start
        message_start/_end          the prompts, or what was queued; a system message that declares tools
        [steering]                  once before the first request
        prepare_request             and the other hooks of a request
        message_start, _update ..., _end    the answer; then its tools are prepared
        tool_execution_*            see the batch
        message_start/_end          one result for each call, in source order
        finish_turn                 may end the run or demand one more request
      turn_end
      should_stop_after_turn
      [steering]  ->  prepare_next_turn, [steering again if there was none], turn_start ...
      [follow-ups when there is nothing else to do]
    agent_end

Stopping. Three ways out lead to one place each.

*Abort.* ``AbortHandle.abort`` raises a flag and, if the run's task is waiting for something that may be cut, cancels the
run's one scope. Where the flag is found raised, the task leaves the scope in the same way, by cancellation. Outside the
scope ``_wind_up`` then sends what an ordinary run would have sent: no delivery is ever cut by an abort.

*Anything else* (the caller's cancellation, Ctrl-C, a hook or a sink that raises): ``_settle`` closes the transcript
synchronously and lists the events that are owed; these are then delivered, under a shield that the grace bounds if the
reason was no ordinary exception; and the same exception goes on.

*The end.* Nothing is owed.

The loop keeps no more state than a stop needs: the open turn, in it the open answer or the open batch, and the open
message. Whatever is about to be sent is marked as sent first, so each event begins at most once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import msgspec
import trio

from trio_agent._abort import AbortHandle
from trio_agent._agent_events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    TurnEnd,
    TurnStart,
)
from trio_agent._builder import MessageBuilder
from trio_agent._clock import timestamp_ms
from trio_agent._errors import RemoteProtocolError
from trio_agent._failures import describe, split_cancelled
from trio_agent._hooks import Hooks, RequestDetails, TurnDecision, TurnDetails
from trio_agent._messages import AgentMessage, AssistantMessage, Message, SystemMessage, ToolResultMessage
from trio_agent._models import Model, StreamOptions, ThinkingLevel
from trio_agent._stream_events import StreamStart
from trio_agent._stream_fn import StreamFn
from trio_agent._tool_batch import ToolBatch, ToolExecutionMode
from trio_agent._tool_call import ToolRunner
from trio_agent._tools import Tool
from trio_agent._transcript import (
    LLM_MESSAGES,
    Context,
    Replay,
    View,
    declaration_changes,
    replay,
    with_declarations,
)

__all__ = ["Inbox", "LoopConfig", "Run", "Sink"]
