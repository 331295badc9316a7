"""The user changes their mind while a tool runs; the model hears of it with its next request.

Prints::

    user: Book a table for two.
    assistant: (calls book)
    result: booked for 2
    user: Make that three, please.
    assistant: (calls book)
    result: booked for 3
    assistant: A table for three is booked.
"""

import trio

from trio_agent import Agent, AgentEvent, AssistantMessage, ToolExecutionStart, ToolResultMessage, UserMessage, tool
from trio_agent.testing import Answer, ScriptedModel, tool_call


@tool
async def book(people: int) -> str:
    """Book a table."""
    return f"booked for {people}"


async def main() -> None:
    scripted = ScriptedModel(
        [
            Answer(calls=[tool_call("book", people=2)]),
            Answer(calls=[tool_call("book", people=3)]),
            "A table for three is booked.",
        ]
    )
    agent = Agent(scripted.model, tools=[book], stream_fn=scripted)

    def interrupt(event: AgentEvent) -> None:
        # Here a listener stands for whoever calls steer(): another task, a key press, a message from a chat.
        if isinstance(event, ToolExecutionStart) and event.args == {"people": 2}:
            agent.steer("Make that three, please.")

    agent.subscribe(interrupt)
    await agent.prompt("Book a table for two.")

    for message in agent.messages:
        match message:
            case UserMessage(content=str(text)):
                print(f"user: {text}")
            case UserMessage(content=blocks):
                print(f"user: {''.join(getattr(block, 'text', '') for block in blocks)}")
            case AssistantMessage():
                print(f"assistant: {message.text or f'(calls {message.tool_calls[0].name})'}")
            case ToolResultMessage():
                print(f"result: {message.text}")
            case _:
                pass  # the system message that declares the tool


trio.run(main)
