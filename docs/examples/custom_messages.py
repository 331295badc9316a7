"""A message type of the application: in the transcript and in files, shown to the model in the application's words.

Prints::

    the model saw: ['[On 3 May the user was in Cardiff]', 'What is the weather here?']
    {"role":"place","date":"3 May","town":"Cardiff"}
    Place(date='3 May', town='Cardiff')
"""

from collections.abc import Sequence

import msgspec
import trio

from trio_agent import Agent, AgentMessage, Hooks, Message, MessageCodec, SystemMessage, UserMessage
from trio_agent.testing import ScriptedModel


class Place(msgspec.Struct, frozen=True, tag_field="role", tag="place"):
    date: str
    town: str


def convert(messages: Sequence[AgentMessage]) -> list[Message]:
    """Plain and pure: what models understand, for each message."""
    converted: list[Message] = []
    for message in messages:
        if isinstance(message, Place):
            converted.append(UserMessage.from_text(f"[On {message.date} the user was in {message.town}]"))
        elif isinstance(message, Message):
            converted.append(message)
    return converted


async def main() -> None:
    scripted = ScriptedModel(["Rain."])
    agent = Agent(scripted.model, stream_fn=scripted, hooks=Hooks(convert_to_llm=convert))
    question = UserMessage.from_text("What is the weather here?")

    await agent.prompt([Place("3 May", "Cardiff"), question])

    seen = [message.content for message in scripted.requests[0].messages if not isinstance(message, SystemMessage)]
    print("the model saw:", seen)

    codec = MessageCodec(Place)
    line = codec.encode(agent.messages[0])
    print(line.decode())
    print(codec.decode(line))


trio.run(main)
