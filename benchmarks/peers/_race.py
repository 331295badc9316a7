"""What do the same things cost with other libraries?

Unit: microseconds of processor time, all threads counted. fan_out is a call of one answer with 1000 calls; turns is a
turn of 100 with one call each; deltas is a delta of 1000; agents is an agent of 100 at once, with three turns of two
calls each; sse is a chunk of 10 000 from a server on the loopback, and the place of the official SDK of OpenAI, which
has no agents, while those who have them leave HTTP to it or to others. Each library runs in a process of its own and by
its documented fast path, with a model that answers at once and a tool that gives up control once; that the tools ran is
checked. Beside each: bare Trio in a process of the same round.

Not shown: what else those libraries do for their users, and what a real model makes of the difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks._harness import Plan, Row, Spread, fresh_process
from benchmarks._report import package_version
from benchmarks.peers._contest import QUESTIONS

__all__ = ["CONTENDERS", "race"]

_UNITS: Final = {
    "fan_out": "us a call",
    "turns": "us a turn",
    "deltas": "us a delta",
    "agents": "us an agent",
    "sse": "us a chunk",
}


@dataclass(frozen=True, slots=True)
class Contender:
    """A library.

    Attributes:
        module: that answers for it.
        package: that has to be installed.
    """

    module: str
    package: str


_BARE: Final = Contender("bare_trio_peer", "trio")
_OURS: Final = Contender("trio_agent_peer", "trio-agent")
CONTENDERS: Final = (
    _OURS,
    Contender("pydantic_ai_peer", "pydantic-ai-slim"),
    Contender("openai_agents_peer", "openai-agents"),
    Contender("langgraph_peer", "langgraph"),
    Contender("strands_peer", "strands-agents"),
    Contender("openai_peer", "openai"),
)


def race(plan: Plan, progress: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    """Measure all contenders that are installed, in turn, for as many rounds as planned.

    Returns:
        The rows, and what is to be said about contenders that could not take part.
    """
    notes: list[str] = []
    labels: dict[Contender, str] = {}
    for contender in CONTENDERS:
        number = package_version(contender.package)
        if number is not None:
            labels[contender] = f"{contender.package} {number}"
        elif contender is _OURS:
            labels[contender] = "trio-agent"  # a checkout that is not installed
        else:
            notes.append(f"{contender.package} is not installed and was left out; the extra 'bench-peers' brings it")
    costs: dict[Contender, list[dict[str, float]]] = {contender: [] for contender in labels}
    bare: list[dict[str, float]] = []
    for round_number in range(plan.rounds):
        bare.append(_ask(_BARE, plan))
        for contender in list(costs):
            progress(f"peers, round {round_number + 1} of {plan.rounds}: {contender.package}")
            try:
                costs[contender].append(_ask(contender, plan))
            except RuntimeError as exc:
                del costs[contender]
                notes.append(f"{labels[contender]} could not take part: {str(exc).strip().splitlines()[-1]}")
    rows = [
        _row(question, labels[contender], plan, rounds, bare)
        for question in QUESTIONS
        for contender, rounds in costs.items()
        if all(question in round_costs for round_costs in rounds)
    ]
    return rows, notes


def _ask(contender: Contender, plan: Plan) -> dict[str, float]:
    module = f"benchmarks.peers.{contender.module}"
    answer: dict[str, float] = json.loads(fresh_process("-m", module, str(plan.max_size), plan.clock.__name__))
    return answer


def _row(question: str, label: str, plan: Plan, rounds: list[dict[str, float]], bare: list[dict[str, float]]) -> Row:
    size = min(QUESTIONS[question], plan.max_size)
    costs = [costs[question] * 1e6 / size for costs in rounds]
    by_hand = [costs[question] * 1e6 / size for costs in bare]
    return Row(
        benchmark=f"peers {question}",
        series=label,
        size=size,
        unit=_UNITS[question],
        rounds=plan.rounds,
        ours=Spread.of(costs),
        bare=Spread.of(by_hand),
        ratio=Spread.of([a / b for a, b in zip(costs, by_hand, strict=True)]),
    )
