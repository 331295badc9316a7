"""A deadline around a run, a time limit for one tool, and one limit for the tools of two agents.

Prints::

    the deadline ended the run after 5 s; the call has its result: Operation aborted
    the tool's own limit: Tool "slow" timed out after 2 s
    20 calls of 10 s under a limit of 5: 40 s, at most 5 at once
"""

import trio
import trio.testing

from trio_agent import Agent, ToolResultMessage, tool
from trio_agent.testing import Answer, ScriptedModel, check_transcript, tool_call


@tool
async def slow() -> str:
    """Take ten seconds."""
    await trio.sleep(10)
    return "done"


@tool(name="slow", timeout=2)
async def impatient() -> str:
    """Take ten seconds, of which two are allowed."""
    await trio.sleep(10)
    return "done"


def result_of(agent: Agent) -> str:
    return next(message.text for message in agent.messages if isinstance(message, ToolResultMessage))


async def deadline_around_a_run() -> None:
    model = ScriptedModel([Answer(calls=[tool_call("slow")]), "Never said."])
    agent = Agent(model.model, tools=[slow], stream_fn=model)
    with trio.move_on_after(5):
        await agent.prompt("Go")
    check_transcript(agent.messages)
    print(f"the deadline ended the run after {trio.current_time():g} s; the call has its result: {result_of(agent)}")


async def limit_of_one_tool() -> None:
    model = ScriptedModel([Answer(calls=[tool_call("slow")]), "It took too long."])
    agent = Agent(model.model, tools=[impatient], stream_fn=model)
    await agent.prompt("Go")
    print(f"the tool's own limit: {result_of(agent)}")


async def shared_limit() -> None:
    limiter = trio.CapacityLimiter(5)
    started, peak = trio.current_time(), 0

    @tool
    async def work() -> str:
        """Take ten seconds and see how busy it is."""
        nonlocal peak
        peak = max(peak, int(limiter.borrowed_tokens))
        await trio.sleep(10)
        return "done"

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            model = ScriptedModel([Answer(calls=[tool_call("work") for _ in range(10)]), "Done."])
            agent = Agent(model.model, tools=[work], stream_fn=model, limiter=limiter)
            nursery.start_soon(agent.prompt, "Go")
    print(f"20 calls of 10 s under a limit of 5: {trio.current_time() - started:g} s, at most {peak} at once")


async def main() -> None:
    await deadline_around_a_run()
    await limit_of_one_tool()
    await shared_limit()


# A virtual clock, so that the example does not take as long as it says.
trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
