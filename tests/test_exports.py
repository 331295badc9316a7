"""What is public: the doors name it, it is documented, and importing it is cheap."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import trio_agent

ROOT = Path(trio_agent.__file__).parent


def find_doors() -> list[str]:
    """Public modules: the façade, the second door, and the packages for applications."""
    packages = [path.parent.name for path in ROOT.glob("*/__init__.py")]
    # The wire formats are material for providers, not a door of their own.
    public = [name for name in packages if not name.startswith("_") and name != "wire"]
    return ["trio_agent", "trio_agent.lowlevel", *(f"trio_agent.{name}" for name in sorted(public))]


DOORS = find_doors()


def re_exports(door: str) -> dict[str, tuple[str, str]]:
    """Names that a door marks as public by doubling them, with the module and the name that each comes from."""
    found = {}
    module = importlib.import_module(door)
    assert module.__file__ is not None
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.asname is not None:
                    found[alias.asname] = (node.module or "", alias.name)
    return found


def public_objects() -> Iterator[tuple[str, object]]:
    for door in DOORS:
        module = importlib.import_module(door)
        for name in re_exports(door):
            yield f"{door}.{name}", getattr(module, name)


def is_ours(thing: object) -> bool:
    return (getattr(thing, "__module__", None) or "").partition(".")[0] == "trio_agent"


CLASSES = {name: thing for name, thing in public_objects() if isinstance(thing, type) and is_ours(thing)}
FUNCTIONS = {
    name: thing for name, thing in public_objects() if isinstance(thing, types.FunctionType) and is_ours(thing)
}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_names_what_is_public_and_nothing_else(door: str) -> None:
    module = importlib.import_module(door)

    visible = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not (inspect.ismodule(value) and value.__name__ == f"{door}.{name}")
    }

    assert visible == set(re_exports(door))


@pytest.mark.parametrize("door", DOORS)
def test_public_names_keep_their_name_and_are_not_private(door: str) -> None:
    for name, (module, original) in re_exports(door).items():
        assert name == original, f"{door} renames {module}.{original}"
        assert not name.startswith("_")


@pytest.mark.parametrize("door", DOORS)
def test_a_door_has_a_docstring(door: str) -> None:
    assert importlib.import_module(door).__doc__


def test_nothing_has_two_public_names() -> None:
    names = defaultdict(set)
    for door in DOORS:
        for name, origin in re_exports(door).items():
            names[origin].add(name)
    objects = defaultdict(set)
    for full_name, thing in [*CLASSES.items(), *FUNCTIONS.items()]:
        objects[id(thing)].add(full_name.rpartition(".")[2])

    assert [several for several in [*names.values(), *objects.values()] if len(several) > 1] == []


def test_nothing_is_public_at_two_doors() -> None:
    doors = defaultdict(list)
    for full_name, thing in [*CLASSES.items(), *FUNCTIONS.items()]:
        doors[id(thing)].append(full_name)

    assert [several for several in doors.values() if len(several) > 1] == []


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_public_classes_and_functions_are_documented(name: str) -> None:
    thing = CLASSES.get(name) or FUNCTIONS[name]

    # A dataclass and a Struct without a docstring have a made one, which begins with their signature.
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{thing.__name__}(")


def public_members(cls: type) -> Iterator[tuple[str, object]]:
    """Methods and properties of a class and of our bases of it, without fields and magic."""
    for base in cls.__mro__:
        if not is_ours(base):
            continue
        for name, member in vars(base).items():
            if isinstance(member, (classmethod, staticmethod)):
                member = member.__func__  # noqa: PLW2901
            if not name.startswith("_") and isinstance(member, (types.FunctionType, property)):
                yield f"{base.__qualname__}.{name}", member


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_and_properties_are_documented(name: str) -> None:
    undocumented = [member for member, value in public_members(CLASSES[name]) if not inspect.getdoc(value)]

    assert undocumented == []


@pytest.mark.parametrize("name", CLASSES)
def test_fields_of_public_records_are_described(name: str) -> None:
    cls = CLASSES[name]
    fields = getattr(cls, "__struct_fields__", None) or tuple(getattr(cls, "__dataclass_fields__", ()))
    doc = cls.__doc__ or ""
    if "Attributes:" in doc:
        # Who says what an attribute means says it for each; the index of a stream event explains itself.
        missing = {f for f in fields if not f.startswith("_") and f"{f}:" not in doc} - {"content_index"}
        assert missing == set()


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    output = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    return set(output.stdout.split())


def test_importing_the_library_loads_no_http_client_and_no_validator() -> None:
    loaded = modules_after("import trio_agent, trio_agent.lowlevel")

    assert loaded & {"asyncio", "httpx", "jiter", "jsonschema"} == set()


def test_importing_the_library_loads_no_customer() -> None:
    packages = {name.split(".")[1] for name in modules_after("import trio_agent") if name.startswith("trio_agent.")}

    assert packages & {"harness", "providers", "session", "testing", "toolkit"} == set()


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").exists()
