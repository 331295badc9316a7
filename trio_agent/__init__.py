"""Structured concurrency for LLM agents, on Trio.

General layout. Private modules hold one idea each; their imports point down, from the agent over the loop, the tools
and the model boundary to pure logic and plain values. This module and :mod:`trio_agent.lowlevel` are the doors: they
name what is public and hold nothing else. Providers, sessions, the toolkit and the testing kit are packages of their
own, so that importing this one loads neither an HTTP client nor a schema validator.
"""

import logging as _logging

from msgspec import UNSET as UNSET

from trio_agent._agent import Agent as Agent
from trio_agent._agent_events import AgentEnd as AgentEnd
from trio_agent._agent_events import AgentEvent as AgentEvent
from trio_agent._agent_events import AgentStart as AgentStart
from trio_agent._agent_events import MessageEnd as MessageEnd
from trio_agent._agent_events import MessageStart as MessageStart
from trio_agent._agent_events import MessageUpdate as MessageUpdate
from trio_agent._agent_events import ToolExecutionEnd as ToolExecutionEnd
from trio_agent._agent_events import ToolExecutionStart as ToolExecutionStart
from trio_agent._agent_events import ToolExecutionUpdate as ToolExecutionUpdate
from trio_agent._agent_events import ToolResult as ToolResult
from trio_agent._agent_events import TurnEnd as TurnEnd
from trio_agent._agent_events import TurnStart as TurnStart
from trio_agent._agent_run import AgentRun as AgentRun
from trio_agent._agent_state import AgentState as AgentState
from trio_agent._agent_state import AgentStatistics as AgentStatistics
from trio_agent._agent_state import RunResult as RunResult
from trio_agent._codec import MessageCodec as MessageCodec
from trio_agent._delivery import Listener as Listener
from trio_agent._delivery import Subscription as Subscription
from trio_agent._errors import AgentBusyError as AgentBusyError
from trio_agent._errors import AgentError as AgentError
from trio_agent._errors import ContextOverflowError as ContextOverflowError
from trio_agent._errors import DeadlockError as DeadlockError
from trio_agent._errors import MissingKeyError as MissingKeyError
from trio_agent._errors import ModelConnectionError as ModelConnectionError
from trio_agent._errors import ModelError as ModelError
from trio_agent._errors import ModelHTTPError as ModelHTTPError
from trio_agent._errors import ModelTimeoutError as ModelTimeoutError
from trio_agent._errors import OverloadedError as OverloadedError
from trio_agent._errors import ProtocolError as ProtocolError
from trio_agent._errors import RateLimitError as RateLimitError
from trio_agent._errors import RemoteProtocolError as RemoteProtocolError
from trio_agent._errors import ToolArgumentsError as ToolArgumentsError
from trio_agent._errors import ToolDefinitionError as ToolDefinitionError
from trio_agent._errors import ToolError as ToolError
from trio_agent._errors import TranscriptError as TranscriptError
from trio_agent._event_stream import EventStream as EventStream
from trio_agent._hooks import BlockToolCall as BlockToolCall
from trio_agent._hooks import Hooks as Hooks
from trio_agent._hooks import ReplaceArguments as ReplaceArguments
from trio_agent._hooks import RequestDetails as RequestDetails
from trio_agent._hooks import RequestUpdate as RequestUpdate
from trio_agent._hooks import ToolCallDetails as ToolCallDetails
from trio_agent._hooks import ToolResultDetails as ToolResultDetails
from trio_agent._hooks import ToolResultPatch as ToolResultPatch
from trio_agent._hooks import TurnDecision as TurnDecision
from trio_agent._hooks import TurnDetails as TurnDetails
from trio_agent._hooks import TurnUpdate as TurnUpdate
from trio_agent._messages import AgentMessage as AgentMessage
from trio_agent._messages import AssistantContent as AssistantContent
from trio_agent._messages import AssistantMessage as AssistantMessage
from trio_agent._messages import Cost as Cost
from trio_agent._messages import Diagnostic as Diagnostic
from trio_agent._messages import ImageContent as ImageContent
from trio_agent._messages import JsonObject as JsonObject
from trio_agent._messages import JsonValue as JsonValue
from trio_agent._messages import Message as Message
from trio_agent._messages import StopReason as StopReason
from trio_agent._messages import SystemMessage as SystemMessage
from trio_agent._messages import TextContent as TextContent
from trio_agent._messages import ThinkingContent as ThinkingContent
from trio_agent._messages import ToolCall as ToolCall
from trio_agent._messages import ToolDeclaration as ToolDeclaration
from trio_agent._messages import ToolRemoval as ToolRemoval
from trio_agent._messages import ToolResultContent as ToolResultContent
from trio_agent._messages import ToolResultMessage as ToolResultMessage
from trio_agent._messages import UnknownMessage as UnknownMessage
from trio_agent._messages import Usage as Usage
from trio_agent._messages import UserContent as UserContent
from trio_agent._messages import UserMessage as UserMessage
from trio_agent._middleware import RetryDetails as RetryDetails
from trio_agent._middleware import with_fallback as with_fallback
from trio_agent._middleware import with_limiter as with_limiter
from trio_agent._middleware import with_retries as with_retries
from trio_agent._models import CacheRetention as CacheRetention
from trio_agent._models import CostTier as CostTier
from trio_agent._models import Model as Model
from trio_agent._models import ModelCost as ModelCost
from trio_agent._models import PromptCache as PromptCache
from trio_agent._models import StreamOptions as StreamOptions
from trio_agent._models import ThinkingLevel as ThinkingLevel
from trio_agent._prompts import Prompt as Prompt
from trio_agent._queues import QueueMode as QueueMode
from trio_agent._retry import RetryPolicy as RetryPolicy
from trio_agent._stream_events import AssistantMessageEvent as AssistantMessageEvent
from trio_agent._stream_events import StreamDone as StreamDone
from trio_agent._stream_events import StreamError as StreamError
from trio_agent._stream_events import StreamStart as StreamStart
from trio_agent._stream_events import TextDelta as TextDelta
from trio_agent._stream_events import TextEnd as TextEnd
from trio_agent._stream_events import TextStart as TextStart
from trio_agent._stream_events import ThinkingDelta as ThinkingDelta
from trio_agent._stream_events import ThinkingEnd as ThinkingEnd
from trio_agent._stream_events import ThinkingStart as ThinkingStart
from trio_agent._stream_events import ToolCallDelta as ToolCallDelta
from trio_agent._stream_events import ToolCallEnd as ToolCallEnd
from trio_agent._stream_events import ToolCallStart as ToolCallStart
from trio_agent._stream_fn import StreamFn as StreamFn
from trio_agent._stream_fn import get_default_stream_fn as get_default_stream_fn
from trio_agent._stream_fn import set_default_stream_fn as set_default_stream_fn
from trio_agent._tool_batch import ToolExecutionMode as ToolExecutionMode
from trio_agent._tools import ExecutionMode as ExecutionMode
from trio_agent._tools import Tool as Tool
from trio_agent._tools import ToolContext as ToolContext
from trio_agent._tools import ToolOutcome as ToolOutcome
from trio_agent._tools import image as image
from trio_agent._tools import tool as tool
from trio_agent._toolset import AnyTool as AnyTool
from trio_agent._toolset import Toolset as Toolset
from trio_agent._transcript import Context as Context

# An application that configures no logging is not to be written to.
_logging.getLogger("trio_agent").addHandler(_logging.NullHandler())
