"""The layer rules, checked on the import-time graph of the package.

A module may import from its own layer and from those below, and there are no cycles. Imports under ``TYPE_CHECKING``
and inside functions do not count: the first do not happen, the second happen when the work starts. That importing a
module also runs the ``__init__`` of its packages is set aside, as those only name what is public.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import trio_agent

ROOT = Path(trio_agent.__file__).parent
PACKAGE = "trio_agent"

# From the bottom up. A name stands for a module, or for a package with all that is in it.
LAYERS: dict[str, tuple[str, ...]] = {
    "values": ("_errors", "_messages", "_models", "_stream_events", "_agent_events"),
    "pure logic": (
        *("_block", "_builder", "_codec", "_retry", "_text", "_transcript", "wire"),
        *("_checker", "_coerce", "_docstrings", "_json_schema", "_schema", "_schema_nodes", "_signature", "_strict"),
        *("_json_values", "_keywords", "_output", "_results"),
    ),
    # The lowest layer on Trio, so what everybody above needs of Trio is here, too.
    "model boundary": ("_clock", "_failures", "_middleware", "_nursery", "_stream_fn", "providers"),
    "tools and hooks": (
        *("_hooks", "_tool_body", "_tool_context", "_tool_type", "_tools", "_toolset"),
        *("_abort", "_call_state", "_own_context", "_slots", "_tool_call"),
    ),
    "loop": (
        *("_answer", "_closing", "_loop", "_loop_config", "_loop_doors", "_run_core", "_run_transcript"),
        *("_admission", "_tool_batch", "_tool_tasks"),
    ),
    "agent": ("_agent", "_agent_run", "_agent_state", "_delivery", "_event_stream", "_prompts", "_queues"),
    "doors": ("__init__", "lowlevel"),
    "customers": ("__main__", "_demo", "harness", "session", "testing", "toolkit"),
}
ORDER = list(LAYERS)
WITHOUT_TRIO = ORDER[:2]


def layer_of(module: str) -> str | None:
    for layer, names in LAYERS.items():
        if module in names or module.partition(".")[0] in names:
            return layer
    return None


def sources() -> dict[str, str]:
    """Module names below the package, such as ``wire._sse`` or ``wire`` for its ``__init__``, with their text."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def imports_at_import_time(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports_at_import_time(ast.Module(body=[other], type_ignores=[]))
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports_at_import_time(node)


def imported(source: str, module: str, modules: Mapping[str, object]) -> set[str]:
    """Full names of the modules that a module imports at import time, whatever it takes from them."""
    found: set[str] = set()
    for node in imports_at_import_time(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
            continue
        if node.level:
            package = f"{PACKAGE}.{module}".split(".")
            is_package = any(name.startswith(f"{module}.") for name in modules)
            base = package[: len(package) - node.level + is_package]
            origin = ".".join([*base, *([node.module] if node.module else [])])
        else:
            origin = node.module or ""
        for alias in node.names:
            submodule = f"{origin}.{alias.name}"
            found.add(submodule if submodule.removeprefix(f"{PACKAGE}.") in modules else origin)
    return found


def graph(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Which of our modules each of them imports."""
    edges: dict[str, set[str]] = {}
    for module, source in modules.items():
        names = imported(source, module, modules)
        own = {name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}.")}
        edges[module] = own | ({"__init__"} if PACKAGE in names else set())
    return edges


def upward_imports(edges: Mapping[str, set[str]]) -> list[str]:
    found = []
    for module, targets in edges.items():
        for target in sorted(targets):
            low, high = layer_of(module), layer_of(target)
            if low is not None and high is not None and ORDER.index(high) > ORDER.index(low):
                found.append(f"{module} ({low}) imports {target} ({high})")
    return found


def importers(modules: Mapping[str, str], distribution: str) -> set[str]:
    return {
        module
        for module, source in modules.items()
        if any(name.partition(".")[0] == distribution for name in imported(source, module, modules))
    }


def missing_from_table(edges: Mapping[str, set[str]]) -> list[str]:
    found = []
    for module in edges:
        if layer_of(module) is None:
            known = [layer for target in edges[module] if (layer := layer_of(target)) is not None]
            lowest = max(known, key=ORDER.index, default=ORDER[0])
            fits = ", ".join(repr(layer) for layer in ORDER[ORDER.index(lowest) :])
            found.append(f"{module} has no layer: add it to LAYERS in tests/test_layers.py, under one of {fits}")
    return found


def find_cycle(edges: Mapping[str, set[str]]) -> list[str] | None:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as exc:
        return [str(module) for module in exc.args[1]]
    return None


MODULES = sources()


def test_every_module_has_a_layer() -> None:
    assert missing_from_table(graph(MODULES)) == []


def test_no_module_has_two_layers() -> None:
    names = [name for layer in LAYERS.values() for name in layer]

    assert sorted(set(names)) == sorted(names)


def test_imports_point_to_the_same_layer_or_down() -> None:
    assert upward_imports(graph(MODULES)) == []


def test_there_are_no_import_cycles() -> None:
    assert find_cycle(graph(MODULES)) is None


def test_only_providers_import_httpx() -> None:
    strangers = {name for name in importers(MODULES, "httpx") if name.partition(".")[0] != "providers"}

    assert strangers == set()


def test_httpx_is_not_imported_in_functions_elsewhere_either() -> None:
    strangers = set()
    for module, source in MODULES.items():
        for node in ast.walk(ast.parse(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            if any(name.partition(".")[0] == "httpx" for name in names):
                strangers.add(module.partition(".")[0])

    assert strangers <= {"providers"}


@pytest.mark.parametrize("distribution", ["trio", "httpx", "anyio", "asyncio"])
def test_values_and_pure_logic_do_no_io(distribution: str) -> None:
    low = {module for module in importers(MODULES, distribution) if layer_of(module) in WITHOUT_TRIO}

    assert low == set()


def test_nobody_imports_asyncio() -> None:
    assert importers(MODULES, "asyncio") == set()


# The rules themselves, on small made-up packages: a check that finds nothing must be able to find something.


def test_an_upward_import_is_found() -> None:
    modules = {"_messages": "from trio_agent._tools import Tool", "_tools": ""}

    assert upward_imports(graph(modules)) == ["_messages (values) imports _tools (tools and hooks)"]


def test_a_door_is_above_what_it_names() -> None:
    modules = {"__init__": "", "_agent": "import trio_agent", "_loop": "from trio_agent import _agent", "_tools": ""}

    assert graph(modules)["_loop"] == {"_agent"}
    assert upward_imports(graph(modules)) == [
        "_agent (agent) imports __init__ (doors)",
        "_loop (loop) imports _agent (agent)",
    ]


def test_relative_imports_and_modules_of_packages_are_understood() -> None:
    modules = {
        "wire": "from ._sse import Decoder",
        "wire._sse": "from . import _json\nfrom .._messages import Usage\nfrom ..lowlevel import replay",
        "wire._json": "",
        "_messages": "",
        "lowlevel": "",
    }

    assert graph(modules) == {
        "wire": {"wire._sse"},
        "wire._sse": {"wire._json", "_messages", "lowlevel"},
        "wire._json": set(),
        "_messages": set(),
        "lowlevel": set(),
    }
    assert upward_imports(graph(modules)) == ["wire._sse (pure logic) imports lowlevel (doors)"]


def test_a_cycle_is_found() -> None:
    modules = {"_tools": "import trio_agent._hooks", "_hooks": "from trio_agent._tools import Tool"}

    assert set(find_cycle(graph(modules)) or ()) == {"_tools", "_hooks"}


def test_imports_for_type_checkers_and_inside_functions_do_not_count() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from trio_agent._agent import Agent
else:
    import a
try:
    import b
except ImportError:
    import c
class C:
    import d
    def method(self):
        import httpx
def function():
    import trio
"""

    assert imported(source, "_x", {}) == {"typing", "a", "b", "c", "d"}


def test_a_new_module_is_told_where_to_go() -> None:
    [message] = missing_from_table(graph({"_new": "from trio_agent._delivery import Delivery", "_delivery": ""}))

    assert message == (
        "_new has no layer: add it to LAYERS in tests/test_layers.py, under one of 'agent', 'doors', 'customers'"
    )
