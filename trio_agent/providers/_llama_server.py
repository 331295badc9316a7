"""The child process of ``local``: serves one GGUF file with llama.cpp until its standard input ends.

A script of its own, which imports nothing of the library. Reads its settings as one line of JSON, writes the address of
the server (or why there is none) as one line of JSON, and then waits: when the parent goes, whatever way, the input
ends and so does this process.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any


def main() -> None:
    """Serve."""
    # llama.cpp may write to the standard output what it likes; the answer goes to the parent alone.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        server = serve(settings)
        reply = {"url": server.listening_address}
    except Exception as exc:  # noqa: BLE001  # whatever it is, the parent raises it
        server, reply = None, {"error": f"{type(exc).__name__}: {exc}"}
    answer.write(json.dumps(reply) + "\n")
    answer.flush()
    if server is not None:
        sys.stdin.read()
    # Threads of the server may be at work; there is nothing that they would have to finish.
    os._exit(0)


def serve(settings: dict[str, Any]) -> Any:  # noqa: ANN401  # a package without types
    """Start the server in threads of this process."""
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = settings["context_window"] * settings["slots"]
    params.n_parallel = settings["slots"]
    # A slot keeps what it has read of its last prompt; one that shares only the beginning had better take another slot.
    params.slot_prompt_similarity = 0.5
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.api_keys = settings["api_keys"]
    params.use_jinja = True
    params.ui = False
    params.verbosity = 1
    if settings["chat_template"] is not None:
        params.chat_template = settings["chat_template"]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
