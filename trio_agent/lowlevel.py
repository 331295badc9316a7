"""The second door: the loop without an agent, single tool calls, and the parts that providers are built from.

Everything here is real and supported; most applications need none of it.
"""

from trio_agent._abort import AbortHandle as AbortHandle
from trio_agent._builder import MessageBuilder as MessageBuilder
from trio_agent._loop_config import LoopConfig as LoopConfig
from trio_agent._loop_doors import LoopStream as LoopStream
from trio_agent._loop_doors import agent_loop as agent_loop
from trio_agent._loop_doors import agent_loop_continue as agent_loop_continue
from trio_agent._loop_doors import run_agent_loop as run_agent_loop
from trio_agent._loop_doors import run_agent_loop_continue as run_agent_loop_continue
from trio_agent._loop_doors import run_tool_call as run_tool_call
from trio_agent._stream_fn import EventReceiver as EventReceiver
from trio_agent._transcript import Replay as Replay
from trio_agent._transcript import replay as replay
