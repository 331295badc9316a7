"""langgraph: a graph of a model and a ``ToolNode``, as its guide builds it; for deltas ``stream_mode="messages"``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks._harness import Clock
from benchmarks.peers._contest import at_once, contend, in_asyncio

__all__: list[str] = []


class _Script(BaseChatModel):
    """Answers with calls for some turns, then with text; or streams text."""

    turns: int = 0
    calls: int = 0
    deltas: int = 0

    @property
    def _llm_type(self) -> str:
        return "script"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("this model is asked in asyncio only")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        # The prompt, and a message and its results each turn: a graph has no state, and serves any number of runs.
        turn = (len(messages) - 1) // (1 + self.calls)
        message = AIMessage("done")
        if turn < self.turns:
            calls = [
                ToolCall(name="check_item", args={"item": item}, id=f"call_{turn}_{item}") for item in range(self.calls)
            ]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class _StreamingScript(_Script):
    async def _astream(
        self,
        messages: list[BaseMessage],
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for _ in range(self.deltas):
            yield ChatGenerationChunk(message=AIMessageChunk("word "))


@tool
async def check_item(item: int) -> str:
    """Look an item up."""
    await asyncio.sleep(0)
    return str(item)


def _graph(model: BaseChatModel) -> Any:  # noqa: ANN401
    async def ask(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([check_item]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile()


def _input(text: str) -> dict[str, list[tuple[str, str]]]:
    return {"messages": [("user", text)]}


async def _run(graph: Any, turns: int, results: int) -> None:  # noqa: ANN401
    state = await graph.ainvoke(_input("check all"), {"recursion_limit": 2 * turns + 3})
    assert sum(isinstance(message, ToolMessage) for message in state["messages"]) == results
    assert state["messages"][-1].content == "done"


async def fan_out(clock: Clock, size: int) -> float:
    graph = _graph(_Script(turns=1, calls=size))
    started = clock()
    await _run(graph, 1, size)
    return clock() - started


async def turns(clock: Clock, size: int) -> float:
    graph = _graph(_Script(turns=size, calls=1))
    started = clock()
    await _run(graph, size, size)
    return clock() - started


async def deltas(clock: Clock, size: int) -> float:
    graph = _graph(_StreamingScript(deltas=size))
    started = clock()
    parts = [chunk.content async for chunk, _ in graph.astream(_input("say it"), stream_mode="messages")]
    seconds = clock() - started
    assert "".join(parts) == "word " * size
    return seconds


async def agents(clock: Clock, size: int) -> float:
    graph = _graph(_Script(turns=3, calls=2))
    started = clock()
    await at_once(lambda: _run(graph, 3, 6), size)
    return clock() - started


if __name__ == "__main__":
    contend({work.__name__: in_asyncio(work) for work in (fan_out, turns, deltas, agents)})
