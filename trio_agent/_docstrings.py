"""What a docstring says about a function and its parameters, in Google, NumPy or Sphinx style.

Text in, text out: nothing here knows of tools, and nothing is imported. A docstring in no known style is all
description, so that nothing of it is lost.
"""

from __future__ import annotations

import re
from inspect import cleandoc

import msgspec

__all__ = ["Docstring", "parse_docstring"]

_PARAMETER_SECTIONS = {
    "args",
    "arguments",
    "attributes",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "parameters",
    "params",
}
_UNTOLD_SECTIONS = {"raises", "warns", "yields"}
"""What a model has no use for."""

_OTHER_SECTIONS = {"example", "examples", "note", "notes", "return", "returns", "see also", "warning", "warnings"}

_GOOGLE_SECTION = re.compile(r"(\w+(?: \w+)?):\s*$")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?!:)\s*(.*)$")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_NUMPY_UNDERLINE = re.compile(r"-{3,}\s*$")
_SPHINX_FIELD = re.compile(r"[:@](\w+)((?:\s+[^:]+)?):\s*(.*)$")
_SPHINX_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_SPHINX_RETURNS = {"return", "returns"}
_SPHINX_UNTOLD = {"type", "rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype"}


class Docstring(msgspec.Struct):
    """A docstring in parts.

    Attributes:
        description: all that is not about parameters or exceptions.
        parameters: the text about each, by name.
    """

    description: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart."""
    if not text:
        return Docstring()
    lines = cleandoc(text).splitlines()
    parsed = Docstring()
    kept: list[str] = []
    position = 0
    while position < len(lines):
        section, body_start = _section_at(lines, position)
        if section is None:
            position = _take_line(lines, position, kept, parsed)
            continue
        numpy = _NUMPY_UNDERLINE.match(lines[position + 1]) if position + 1 < len(lines) else None
        body_end = _section_end(lines, body_start, indented=numpy is None)
        if section in _PARAMETER_SECTIONS:
            entries = _numpy_entries if numpy else _google_entries
            parsed.parameters.update(entries(lines[body_start:body_end]))
        elif section not in _UNTOLD_SECTIONS:
            kept += lines[position:body_end]
        position = body_end
    parsed.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return parsed


def _section_at(lines: list[str], position: int) -> tuple[str | None, int]:
    # The name of the section that begins at a line, and where its body begins.
    line = lines[position]
    following = lines[position + 1] if position + 1 < len(lines) else ""
    known = _PARAMETER_SECTIONS | _UNTOLD_SECTIONS | _OTHER_SECTIONS
    if _NUMPY_UNDERLINE.match(following) and line.strip().lower() in known:
        return line.strip().lower(), position + 2
    heading = _GOOGLE_SECTION.match(line)
    if (
        heading is not None
        and heading[1].lower() in known
        and (not following.strip() or following.startswith((" ", "\t")))
    ):
        return heading[1].lower(), position + 1
    return None, position


def _section_end(lines: list[str], start: int, *, indented: bool) -> int:
    for position in range(start, len(lines)):
        if indented and lines[position].strip() and not lines[position][0].isspace():
            return position
        if not indented and _section_at(lines, position)[0] is not None:
            return position
    return len(lines)


def _google_entries(lines: list[str]) -> dict[str, str]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    base = min(indents, default=0)
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        entry = _GOOGLE_ENTRY.match(line.strip()) if len(line) - len(line.lstrip()) == base else None
        if entry is not None:
            current = found[entry[1]] = [entry[2]]
        else:
            current.append(line.strip())
    return {name: _joined(text) for name, text in found.items()}


def _numpy_entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        entry = _NUMPY_ENTRY.match(line) if line.strip() and not line[0].isspace() else None
        if entry is not None:
            current = []
            found.update(dict.fromkeys((name.strip().lstrip("*") for name in entry[1].split(",")), current))
        else:
            current.append(line.strip())
    return {name: _joined(text) for name, text in found.items()}


def _take_line(lines: list[str], position: int, kept: list[str], parsed: Docstring) -> int:
    # A line outside of all sections: a Sphinx field with its continuation lines, or description.
    match = _SPHINX_FIELD.match(lines[position])
    if match is None or match[1] not in _SPHINX_PARAMETERS | _SPHINX_RETURNS | _SPHINX_UNTOLD:
        kept.append(lines[position])
        return position + 1
    end = position + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    text = _joined([match[3], *(line.strip() for line in lines[position + 1 : end])])
    kind, names = match[1], match[2].split()
    if kind in _SPHINX_PARAMETERS and names:
        parsed.parameters[names[-1].lstrip("*")] = text  # `:param int limit:` has the type before the name
    elif kind in _SPHINX_RETURNS:
        kept.append(f"Returns: {text}")
    return end


def _joined(lines: list[str]) -> str:
    # One paragraph a line: how a docstring was wrapped means nothing to a model.
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
