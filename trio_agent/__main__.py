"""The command line: ``python -m trio_agent``, also installed as ``trio-agent``.

Reads the arguments and hands over; what is done is done elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["main"]

# What a shell reports of a process that a signal has ended: 128 and the number of SIGINT or SIGPIPE.
_INTERRUPTED: Final = 130
_READER_LEFT: Final = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: of the command line; those of the process if not given.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        from trio_agent._demo import demonstrate

        return demonstrate(options.prompt, catalogue=options.catalogue, as_json=options.json)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left. The interpreter flushes it once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trio-agent",
        description="Answer a question about the stock of a shop: the built-in demonstration, offline, with a scripted "
        "model but a real file, real tools and real concurrency.",
    )
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the question; by default, what is in stock")
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a product catalogue to use instead of the shipped one"
    )
    parser.add_argument("--json", action="store_true", help="print every event as one line of JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
