"""How long does the import take, over that of what it is built on?

Unit: milliseconds of ``import trio_agent``, each in a fresh process that has imported nothing else. Beside it:
``import trio, msgspec``.

Not shown: the start of the interpreter, and the wait for a disk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from functools import partial

from benchmarks._harness import Benchmark, Case, Clock, Plan, Unit, fresh_process

__all__ = ["BENCHMARK"]

_PROGRAM = """
from time import {clock} as clock
started = clock()
import {modules}
print(clock() - started)
"""


def _import(clock: Clock, environment: dict[str, str], modules: str, times: int) -> float:
    program = _PROGRAM.format(clock=clock.__name__, modules=modules)
    return sum(float(fresh_process("-c", program, environment=environment)) for _ in range(times))


def cases(plan: Plan) -> Iterable[Case]:
    with tempfile.TemporaryDirectory() as bytecode:
        # Whoever installs a package has its bytecode; a checkout, or a machine that writes none, may not.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ours, bare = (partial(_import, plan.clock, environment, modules) for modules in ("trio_agent", "trio, msgspec"))
        ours(1)
        yield Case(series="import", size=1, ours=ours, bare=bare, repeatable=False)


BENCHMARK = Benchmark(name="import_time", unit=Unit("ms", 1e3), cases=cases)
