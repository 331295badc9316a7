"""What does reading and writing a transcript cost, over msgspec alone?

Unit: milliseconds for M messages as one JSON array, through ``MessageCodec``, which keeps messages of unknown roles.
Beside it: a ``msgspec`` encoder and decoder of the same Structs. The messages are those of a working session: a
question, an answer with thinking, text and a call or two, and the results.

Not shown: files, and the tree of a session.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import msgspec

from benchmarks._harness import Benchmark, Case, Plan, Unit, timed
from trio_agent import (
    AgentMessage,
    AssistantMessage,
    Cost,
    Message,
    MessageCodec,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

__all__ = ["BENCHMARK", "messages"]

_LINE = "The shelf in aisle seven holds what the list says, and two boxes more than it says. "
_USAGE = Usage(
    input=1200,
    output=350,
    cache_read=8000,
    cache_write=0,
    total_tokens=9550,
    cost=Cost(input=0.0036, output=0.00525, cache_read=0.0024, cache_write=0.0, total=0.01125),
)


def _session(number: int) -> list[AgentMessage]:
    now = 1_700_000_000_000 + number
    calls = [
        ToolCall(id=f"call_{number}_{k}", name="read", arguments={"path": f"docs/{number}.md", "limit": 100 * (k + 1)})
        for k in range(1 + number % 2)
    ]
    answer = AssistantMessage(
        content=(ThinkingContent(thinking=_LINE * 4), TextContent(text=_LINE * 3), *calls),
        api="openai-completions",
        provider="openai",
        model="some-model",
        usage=_USAGE,
        stop_reason="toolUse",
        timestamp=now,
        thinking_level="low",
        duration_ms=1234.5,
    )
    results = [
        ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextContent(text=_LINE * 20),),
            is_error=False,
            timestamp=now,
            details={},
        )
        for call in calls
    ]
    return [UserMessage(content=_LINE, timestamp=now), answer, *results]


def messages(count: int) -> list[AgentMessage]:
    made: list[AgentMessage] = []
    while len(made) < count:
        made += _session(len(made))
    return made[:count]


def cases(plan: Plan) -> Iterable[Case]:
    codec = MessageCodec()
    encoder, decoder = msgspec.json.Encoder(), msgspec.json.Decoder(list[Message])
    for count in plan.sizes(1000):
        made = messages(count)
        data = encoder.encode(made)
        assert codec.decode_list(data) == decoder.decode(data) == made
        assert codec.encode_list(made) == data
        encode, bare_encode = partial(codec.encode_list, made), partial(encoder.encode, made)
        decode, bare_decode = partial(codec.decode_list, data), partial(decoder.decode, data)
        yield Case(series="encode", size=count, ours=timed(encode, plan.clock), bare=timed(bare_encode, plan.clock))
        yield Case(series="decode", size=count, ours=timed(decode, plan.clock), bare=timed(bare_decode, plan.clock))


BENCHMARK = Benchmark(name="transcript", unit=Unit("ms", 1e3), cases=cases)
