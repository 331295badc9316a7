"""The loop as a stream behind a bounded buffer; what fails behind it reaches the reader.

Prints::

    agent_end
    2 messages
    the reader got: the policy server is down
"""

import msgspec
import trio

from trio_agent import AgentEvent, Context, Hooks, RequestDetails, UserMessage
from trio_agent.lowlevel import LoopConfig, agent_loop
from trio_agent.testing import ScriptedModel


async def unreachable(details: RequestDetails) -> None:
    raise ConnectionError("the policy server is down")


async def main() -> None:
    scripted = ScriptedModel(["Hello."])
    config = LoopConfig(model=scripted.model)
    prompts = [UserMessage.from_text("Hi")]

    async with agent_loop(prompts, Context(), config, scripted, buffer=16) as stream:
        last: AgentEvent | None = None
        async for event in stream:
            last = event
        print(msgspec.to_builtins(last)["type"])
        print(len(await stream.result()), "messages")

    config = LoopConfig(model=scripted.model, hooks=Hooks(prepare_request=unreachable))
    try:
        async with agent_loop(prompts, Context(), config, scripted) as stream:
            async for event in stream:
                last = event
    except ConnectionError as exc:
        print("the reader got:", exc)


trio.run(main)
