"""Questions that wait until the run has nothing else to do, one at a time or all together.

Prints::

    one-at-a-time: 3 answers, then ()
    all: 2 answers, then ()
    still waiting: 1
"""

from typing import Literal

import trio

from trio_agent import Agent, AssistantMessage, ModelError
from trio_agent.testing import Answer, ScriptedModel, ScriptedRequest


def count_messages(request: ScriptedRequest) -> str:
    return f"I have read {len(request.messages)} messages."


async def answers(mode: Literal["one-at-a-time", "all"]) -> None:
    scripted = ScriptedModel([count_messages] * 3)
    agent = Agent(scripted.model, stream_fn=scripted, follow_up_mode=mode)
    agent.follow_up("And in French?")
    agent.follow_up("And in Welsh?")

    result = await agent.prompt("How do you say tea in German?")

    count = sum(isinstance(message, AssistantMessage) for message in result.messages)
    print(f"{mode}: {count} answers, then {agent.queued()}")


async def main() -> None:
    await answers("one-at-a-time")
    await answers("all")

    # A failed answer ends the run and leaves the queues alone; the next run takes them.
    scripted = ScriptedModel([Answer(fail=ModelError("the server is busy"))])
    agent = Agent(scripted.model, stream_fn=scripted)
    agent.follow_up("And in French?")
    await agent.prompt("How do you say tea in German?")
    print(f"still waiting: {len(agent.queued_follow_ups)}")


trio.run(main)
