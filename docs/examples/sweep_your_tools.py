"""Your own tool under every possible cancellation: each step of the schedule, one at a time.

Prints::

    the files are closed, whatever was stopped and whenever
"""

import trio

from trio_agent import Agent, tool
from trio_agent.testing import Answer, ScriptedModel, cancel_everywhere, tool_call

open_files: list[str] = []


@tool
async def copy_file(source: str) -> str:
    """Copy a file, in steps between which it may be cancelled."""
    open_files.append(source)
    try:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
    finally:
        open_files.remove(source)
    return f"copied {source}"


def make_run() -> Agent:
    calls = [tool_call("copy_file", source=name) for name in ("a", "b")]
    model = ScriptedModel([Answer(calls=calls), "Copied.", "Once more."])
    return Agent(model.model, tools=[copy_file], stream_fn=model)


cancel_everywhere(make_run, action="cancel")
cancel_everywhere(make_run, action="abort")
assert not open_files
print("the files are closed, whatever was stopped and whenever")
