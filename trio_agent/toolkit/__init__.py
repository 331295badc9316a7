"""Tools for agents that work on files: ``read``, and the cutting of long texts for tools of your own."""

from trio_agent.toolkit._read import read_tool as read_tool
from trio_agent.toolkit._truncate import TruncationResult as TruncationResult
from trio_agent.toolkit._truncate import truncate_head as truncate_head
from trio_agent.toolkit._truncate import truncate_tail as truncate_tail

__all__ = ["TruncationResult", "read_tool", "truncate_head", "truncate_tail"]
