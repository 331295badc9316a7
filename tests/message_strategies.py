"""Hypothesis strategies for the values of a transcript."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from msgspec import UNSET

from trio_agent import (
    AgentMessage,
    AssistantMessage,
    Cost,
    Diagnostic,
    ImageContent,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDeclaration,
    ToolRemoval,
    ToolResultMessage,
    UnknownMessage,
    Usage,
    UserMessage,
)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
maybe_text = st.none() | texts
counts = st.integers(0, 2**53)
dollars = st.floats(0, 1e6)
# Floats are given as such: JSON makes no difference between 1 and 1.0, and the fields that may be either are floats.
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
unset_or_json = st.just(UNSET) | json_values


def tuples(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=3).map(tuple)


text_blocks = st.builds(TextContent, text=texts, text_signature=maybe_text)
images = st.builds(ImageContent, data=texts, mime_type=texts)
thinking_blocks = st.builds(
    ThinkingContent, thinking=texts, thinking_signature=maybe_text, redacted=st.none() | st.booleans()
)
tool_calls = st.builds(
    ToolCall,
    id=texts,
    name=texts,
    arguments=objects,
    arguments_error=maybe_text,
    thought_signature=maybe_text,
    namespace=maybe_text,
)
costs = st.builds(
    Cost,
    input=dollars,
    output=dollars,
    cache_read=dollars,
    cache_write=dollars,
    total=dollars,
    total_from_provider=st.none() | st.booleans(),
)
usages = st.builds(
    Usage,
    input=counts,
    output=counts,
    cache_read=counts,
    cache_write=counts,
    total_tokens=counts,
    cost=costs,
    cache_write_1h=st.none() | counts,
    reasoning=st.none() | counts,
)
declarations = st.builds(ToolDeclaration, name=texts, description=texts, parameters=objects)
diagnostics = st.builds(Diagnostic, type=texts, timestamp=counts, error=st.none() | objects, details=unset_or_json)
system_messages = st.builds(
    SystemMessage,
    content=texts | tuples(text_blocks),
    timestamp=counts,
    sections=st.none() | st.dictionaries(texts, maybe_text, max_size=3),
    tools_added=st.none() | tuples(declarations),
    tools_removed=st.none() | tuples(st.builds(ToolRemoval, name=texts)),
)
user_messages = st.builds(UserMessage, content=texts | tuples(text_blocks | images), timestamp=counts)
assistant_messages = st.builds(
    AssistantMessage,
    content=tuples(text_blocks | thinking_blocks | tool_calls),
    api=texts,
    provider=texts,
    model=texts,
    usage=usages,
    stop_reason=st.sampled_from(get_args(StopReason)),
    timestamp=counts,
    error_message=maybe_text,
    thinking_level=maybe_text,
    duration_ms=st.none() | dollars,
    response_model=maybe_text,
    response_id=maybe_text,
    raw_stop_reason=maybe_text,
    provider_thinking_level=maybe_text,
    diagnostics=st.none() | tuples(diagnostics),
    end_turn=st.none() | st.booleans(),
    deferred=json_values,
)
tool_results = st.builds(
    ToolResultMessage,
    tool_call_id=texts,
    tool_name=texts,
    content=tuples(text_blocks | images),
    is_error=st.booleans(),
    timestamp=counts,
    details=unset_or_json,
    usage=st.none() | usages,
    duration_ms=st.none() | dollars,
    nested_calls=json_values,
)
unknown_messages = st.sampled_from(["note", "bashExecution", ""]).map(
    lambda role: UnknownMessage(role, b'{"role":"' + role.encode() + b'","text":"a"}')
)


def messages() -> st.SearchStrategy[AgentMessage]:
    """Messages of all roles."""
    return st.one_of(system_messages, user_messages, assistant_messages, tool_results, unknown_messages)
