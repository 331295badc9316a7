"""The documentation is true: its examples run and print what they say, and no public name goes unmentioned."""

from __future__ import annotations

import ast
import re
import runpy
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import trio_agent
import trio_agent.lowlevel
import trio_agent.providers
import trio_agent.testing

DOCS = Path(__file__).parent.parent / "docs"
EXAMPLES = sorted(DOCS.glob("examples/*.py"))
CHAPTERS = sorted(DOCS.glob("*.md"))


def promised(source: str) -> list[str] | None:
    """The lines under "Prints::" in the docstring of an example; ``None`` if it has no such part."""
    _, found, rest = (ast.get_docstring(ast.parse(source)) or "").partition("Prints::\n")
    return [line.rstrip() for line in textwrap.dedent(rest).strip("\n").splitlines()] if found else None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_what_it_says(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # An example is a script and runs Trio itself; `runpy` keeps it in this process and out of `sys.modules`.
    runpy.run_path(str(path), run_name="__main__")

    seen = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert seen == promised(path.read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_mentioned_in_a_chapter(path: Path) -> None:
    assert any(f"examples/{path.name}" in chapter.read_text() for chapter in CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_python_in_a_chapter_is_an_excerpt_of_an_example(chapter: Path) -> None:
    sources = [path.read_text() for path in EXAMPLES]
    blocks = re.findall(r"^```python\n(.*?)^```", chapter.read_text(), flags=re.DOTALL | re.MULTILINE)

    strays = [block for block in blocks if not any(is_excerpt(block, source) for source in sources)]

    assert strays == []


def is_excerpt(block: str, source: str) -> bool:
    """Whether the parts of a block, between lines of nothing but dots, stand in the source, at any indentation."""
    parts = re.split(r"^ *\.\.\.\n", block, flags=re.MULTILINE)
    flat = "\n".join(line.strip() for line in source.splitlines())
    return all("\n".join(line.strip() for line in part.strip("\n").splitlines()) in flat for part in parts)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_links_of_a_chapter_lead_somewhere(chapter: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", chapter.read_text())
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (chapter.parent / target).exists()] == []


@pytest.mark.parametrize(
    "module",
    [trio_agent, trio_agent.lowlevel, trio_agent.providers, trio_agent.testing],
    ids=lambda module: module.__name__,
)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    reference = "".join(path.read_text() for path in DOCS.glob("reference*.md"))
    mentioned = set(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", "".join(re.findall(r"`[^`]+`", reference))))

    assert sorted(public_names(module) - mentioned) == []


def public_names(module: ModuleType) -> set[str]:
    return {name for name, value in vars(module).items() if name[0] != "_" and not isinstance(value, ModuleType)}
