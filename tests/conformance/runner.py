"""Plays a scenario on a virtual clock and returns what was observed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Generator
from typing import Any, Final

import pytest
import trio
import trio.testing
from trio._core import _run as trio_run

from .actions import perform
from .hooks import make_hooks
from .performers import PERFORMERS, AgentPerformer, Performer
from .scenario import JsonObject
from .stage import Stage
from .tools import make_tool

__all__ = ["observe"]

FOR_EVER: Final = 3600.0
"""No step takes an hour of virtual time; one that is still waiting then never ends."""


def observe(script: JsonObject, *, seed: int, watched: bool = False) -> JsonObject:
    """Play the input of a scenario.

    Args:
        script: the input.
        seed: of the order in which Trio runs tasks that are ready at the same time. Seeds other than 0 also add
            checkpoints to model, tools, hooks, listeners and recorder.
        watched: the recorder is the body of a watched run of the agent.
    """
    with scheduled_by(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        observation: JsonObject = trio.run(_play, script, seed, watched, clock=clock)
    return observation


@contextlib.contextmanager
def scheduled_by(seed: int) -> Generator[None]:
    """Let Trio shuffle each batch of tasks with this seed."""
    before = trio_run._r.getstate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        trio_run._r.seed(seed)
        try:
            yield
        finally:
            trio_run._r.setstate(before)


async def _play(script: JsonObject, seed: int, watched: bool) -> JsonObject:
    # Late work of tools outlives the steps; what is left at the end is read before it has ended.
    async with trio.open_nursery() as background:
        stage = Stage(script, background, random.Random(seed) if seed else None)  # noqa: S311
        stage.tools = {key: make_tool(stage, key) for key in stage.definitions}
        stage.hooks = make_hooks(stage)
        performer = AgentPerformer(stage, watched=True) if watched else PERFORMERS[script.get("mode", "agent")](stage)
        async with trio.open_nursery() as spawned:
            play = _Play(stage, performer, spawned)
            for number, step in enumerate(script["steps"]):
                await play.step(number, step, "main")
        final = performer.final()
    recorder = stage.recorder
    return {
        "steps": recorder.steps,
        "events": recorder.events,
        "log": recorder.log,
        "requests": recorder.requests,
        "final": final,
    }


class _Play:
    # The steps of the caller.
    def __init__(self, stage: Stage, performer: Performer, spawned: trio.Nursery) -> None:
        self._stage = stage
        self._kinds = performer.steps()
        self._spawned = spawned
        self._ended: dict[str, trio.Event] = {}

    async def step(self, number: int, step: JsonObject, lane: str) -> None:
        if "spawn" in step:
            self._ended[step["as"]] = trio.Event()
            self._spawned.start_soon(self._spawn, number, step["spawn"], step["as"])
        elif "join" in step:
            await self._ended[step["join"]].wait()
        elif "sleep" in step:
            await trio.sleep(step["sleep"] / 1000)
        elif "do" in step:
            await perform(self._stage, step["do"], lane)
        else:
            await self._logged(number, step, lane)

    async def _spawn(self, number: int, step: JsonObject, name: str) -> None:
        await self.step(number, step, f"spawn:{name}")
        self._ended[name].set()

    async def _logged(self, number: int, step: JsonObject, lane: str) -> None:
        [kind] = [kind for kind in self._kinds if kind in step]
        entry: JsonObject = {"step": kind, "outcome": "never ends"}
        recorder = self._stage.recorder
        recorder.steps.append(entry)
        recorder.note(lane, "step.start", i=number, step=kind)
        with trio.move_on_after(FOR_EVER):
            entry |= await self._outcome(kind, step, lane)
            recorder.note(lane, "step.end", i=number, step=kind, outcome=entry["outcome"])

    async def _outcome(self, kind: str, step: JsonObject, lane: str) -> JsonObject:
        try:
            messages: Any = await self._kinds[kind](step, lane)
        except Exception as error:  # noqa: BLE001 - whatever reaches the caller is the observation
            return {"outcome": "error", "error": str(error)}
        if messages is None:
            return {"outcome": "ok"}
        return {"outcome": "ok", "messages": self._stage.recorder.normalise.messages(messages)}
