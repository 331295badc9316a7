"""The scripted model: a stream function that answers request *n* with entry *n*."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Self

import msgspec
import trio

from trio_agent import AssistantMessageEvent, Context, Model, ModelError, StreamOptions

from .normalise import plain
from .scenario import JsonObject
from .stage import Stage
from .values import ASSISTANT_DEFAULTS

__all__ = ["ScriptedModel"]

_OUT_OF_ANSWERS: JsonObject = {"stop": "error", "errorMessage": "no scripted response left"}


class ScriptedModel:
    """Answers from a list; records what it was given."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._entries = iter(stage.input.get("responses", []))

    def __call__(self, model: Model, context: Context, options: StreamOptions, /) -> Answer:
        return Answer(self._stage, self._entries, model, context, options)


class Answer:
    """One answer: a source that does its next step when the next event is asked for."""

    def __init__(
        self, stage: Stage, entries: Iterator[JsonObject], model: Model, context: Context, options: StreamOptions
    ) -> None:
        self._stage = stage
        self._entries = entries
        self._given = (model, context, options)
        self._on_abort: str | None = None
        self._steps: Iterator[JsonObject] = iter(())
        self._message = PartialAnswer(model)

    async def __aenter__(self) -> Self:
        # A request that is made after the abort takes no entry.
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._stage.pause()
        model, context, options = self._given
        entry = next(self._entries, _OUT_OF_ANSWERS)
        self._stage.recorder.request(model.id, context.messages, options)
        self._on_abort = entry.get("onAbort")
        self._steps = iter(long_form(entry))
        if "connect" in entry:
            with self._abort_rule():
                await trio.sleep(entry["connect"] / 1000)
        if "throws" in entry:
            raise ModelError(entry["throws"])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        return None

    def __aiter__(self) -> Answer:
        return self

    async def __anext__(self) -> AssistantMessageEvent:
        while True:
            with self._abort_rule():
                await trio.lowlevel.checkpoint()
                await self._stage.pause()
                step = next(self._steps, None)
                if step is not None and "sleep" in step:
                    await trio.sleep(step["sleep"] / 1000)
                    continue
            if step is None or step.get("type") == "close":
                raise StopAsyncIteration
            if "throw" in step:
                raise ModelError(step["throw"])
            event = self._message.fold(step)
            if not step.get("unsent"):
                return event

    @contextlib.contextmanager
    def _abort_rule(self) -> Generator[None]:
        if self._on_abort == "ignore":
            with trio.CancelScope(shield=True):
                yield
            return
        try:
            yield
        except trio.Cancelled:
            if self._on_abort == "throw":
                raise ModelError("stream torn down") from None  # noqa: ASYNC104  # what the scenario asks for
            raise


class PartialAnswer:
    """The message as far as its source has come, and the events that carry what is needed to fold it."""

    def __init__(self, model: Model) -> None:
        self._base = {**ASSISTANT_DEFAULTS, "provider": model.provider, "api": model.api, "model": model.id}
        self._blocks: dict[int, JsonObject] = {}
        self._argument_text: dict[int, str] = {}

    def fold(self, step: JsonObject) -> AssistantMessageEvent:
        kind, _, part = step["type"].rpartition("_")
        event = {key: value for key, value in step.items() if key != "unsent"}
        if part == "start" and kind:
            self._open(kind, step)
        elif part == "delta":
            self._grow(kind, step["contentIndex"], step["delta"])
        elif part == "end":
            event |= self._close(kind, step)
        elif part in ("done", "error"):
            event["message" if part == "done" else "error"] = self._whole(step)
        folded: AssistantMessageEvent = msgspec.convert(plain(event), AssistantMessageEvent)
        return folded

    def _open(self, kind: str, step: JsonObject) -> None:
        index = step["contentIndex"]
        if kind == "toolcall":
            self._argument_text[index] = ""
            self._blocks[index] = {"type": "toolCall", "id": step["id"], "name": step["name"], "arguments": {}}
        else:
            self._blocks[index] = {"type": kind, kind: ""}

    def _grow(self, kind: str, index: int, delta: str) -> None:
        if kind != "toolcall":
            self._blocks[index][kind] += delta
            return
        self._argument_text[index] += delta
        with contextlib.suppress(ValueError):
            self._blocks[index]["arguments"] = json.loads(self._argument_text[index])

    def _close(self, kind: str, step: JsonObject) -> JsonObject:
        block = self._blocks[step["contentIndex"]]
        if kind == "toolcall":
            return {"toolCall": block}
        block[kind] = step.get("content", block[kind])
        return {"content": block[kind]}

    def _whole(self, step: JsonObject) -> JsonObject:
        whole = {
            **self._base,
            "content": [self._blocks[index] for index in sorted(self._blocks)],
            "stopReason": step["reason"],
        }
        if "errorMessage" in step:
            whole["errorMessage"] = step["errorMessage"]
        return whole


def long_form(entry: JsonObject) -> list[JsonObject]:
    """The steps of an answer; the short form names only its blocks and how it stops."""
    if "events" in entry:
        steps: list[JsonObject] = entry["events"]
        return steps
    pause: list[JsonObject] = [{"sleep": entry["pace"]}] if "pace" in entry else []
    opening: list[JsonObject] = [{"type": "start"}]
    for kind in ("thinking", "text"):
        if kind in entry:
            opening += _text_block(kind, _blocks_in(opening), entry[kind], pause)
    for call in entry.get("calls", ()):
        opening += _call_block(_blocks_in(opening), call, pause)
    if entry.get("noStart"):
        opening = [{**step, "unsent": True} for step in opening if "sleep" not in step]
    return [*opening, *pause, _closing(entry)]


def _blocks_in(steps: list[JsonObject]) -> int:
    return sum(step.get("type", "").endswith("_start") for step in steps)


def _text_block(kind: str, index: int, text: str, pause: list[JsonObject]) -> list[JsonObject]:
    return [
        *pause,
        {"type": f"{kind}_start", "contentIndex": index},
        *pause,
        {"type": f"{kind}_delta", "contentIndex": index, "delta": text},
        {"type": f"{kind}_end", "contentIndex": index},
    ]


def _call_block(index: int, call: JsonObject, pause: list[JsonObject]) -> list[JsonObject]:
    arguments = json.dumps(call.get("args", {}), separators=(",", ":"), ensure_ascii=False)
    return [
        *pause,
        {"type": "toolcall_start", "contentIndex": index, "id": call["id"], "name": call["name"]},
        {"type": "toolcall_delta", "contentIndex": index, "delta": arguments},
        {"type": "toolcall_end", "contentIndex": index},
    ]


def _closing(entry: JsonObject) -> JsonObject:
    reason = entry.get("stop", "toolUse" if entry.get("calls") else "stop")
    if reason in ("error", "aborted"):
        return {"type": "error", "reason": reason, "errorMessage": entry.get("errorMessage", "scripted failure")}
    return {"type": "done", "reason": reason}
