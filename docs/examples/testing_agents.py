"""A test of an agent: the model is scripted, the tool waits for the test, and the transcript is checked.

Prints::

    while the tool runs: ('call_1',)
    the model was told: ['gate']
    ToolExecutionStart, ToolExecutionEnd
"""

import trio

from trio_agent import Agent, ToolExecutionEnd, ToolExecutionStart
from trio_agent.testing import Answer, Gate, ScriptedModel, check_transcript, record, tool_call


async def main() -> None:
    gate = Gate(result="open")
    scripted = ScriptedModel([Answer(calls=[tool_call("gate")]), "Done."])
    agent = Agent(scripted.model, tools=[gate.tool], stream_fn=scripted)

    with record(agent) as events:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.prompt, "Go through the gate.")
            await gate.wait_entered()
            print("while the tool runs:", agent.state.pending_tool_calls)
            gate.open()

    scripted.assert_exhausted()
    check_transcript(agent.messages)
    print("the model was told:", [declaration.name for declaration in scripted.requests[0].tools])
    about_tools = [event for event in events if isinstance(event, ToolExecutionStart | ToolExecutionEnd)]
    print(", ".join(type(event).__name__ for event in about_tools))


trio.run(main)
