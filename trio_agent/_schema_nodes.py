"""Finding one's way in a JSON Schema: local references, types, and the branch of a union that a value is meant for.

Shared by coercion and by the explanation of errors, so that both look at the same branch. Nothing is fetched: a
reference that does not lead to a place in the same document leads nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias
from urllib.parse import unquote

from trio_agent._json_values import is_array, is_object, same_json
from trio_agent._messages import JsonObject, JsonValue

Discriminator: TypeAlias = tuple[str, list[JsonValue]]
"""The name of a property, and its value in each branch."""

__all__ = ["References", "discriminator", "likely_branch", "matches", "type_names"]


class References:
    """Resolves the references of one document."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._discriminators: dict[int, Discriminator | None] = {}

    def resolve(self, schema: JsonValue) -> JsonValue:
        """Follow ``$ref`` from a schema to one without; ``None`` if that leads nowhere."""
        seen: set[str] = set()
        while is_object(schema) and isinstance(reference := schema.get("$ref"), str):
            if reference in seen or not reference.startswith("#"):
                return None
            seen.add(reference)
            schema = self._at(reference)
        return schema

    def discriminator(self, branches: list[JsonValue]) -> Discriminator | None:
        """See ``discriminator``; found once for each union of the document."""
        key = id(branches)
        if key not in self._discriminators:
            self._discriminators[key] = discriminator([self.resolve(branch) for branch in branches])
        return self._discriminators[key]

    def _at(self, reference: str) -> JsonValue:
        place: Any = self._root
        if reference == "#":
            return place
        if not reference.startswith("#/"):
            return None
        for part in unquote(reference[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if is_object(place):
                place = place.get(key)
            elif is_array(place) and key.isdecimal() and int(key) < len(place):
                place = place[int(key)]
            else:
                return None
        return place


def type_names(schema: JsonObject) -> tuple[str, ...]:
    """The types that a schema names, none if it leaves them open."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    return tuple(name for name in named if isinstance(name, str)) if is_array(named) else ()


def discriminator(branches: Sequence[JsonValue]) -> Discriminator | None:
    """The property by which the branches of a union differ, and its value in each.

    It is the first property of the first branch for which every branch demands one value, no two the same.

    Args:
        branches: resolved.
    """
    first = branches[0] if branches else None
    for name in _properties(first):
        tags = [_only_value(_properties(branch).get(name)) for branch in branches]
        known = [tag[0] for tag in tags if tag is not None]
        if len(known) == len(branches) and not any(same_json(a, b) for a, b in combinations(known, 2)):
            return name, known
    return None


def likely_branch(value: JsonValue, branches: Sequence[JsonValue]) -> int | None:
    """The branch of a union that an object is meant for although it does not fit any.

    The one that its discriminator names; without one, the branch that declares most of its keys. ``None`` if nothing
    speaks for any branch.

    Args:
        value: that fits none of the branches.
        branches: resolved.
    """
    if not is_object(value):
        return None
    if (found := discriminator(branches)) is not None:
        name, tags = found
        return next((i for i, tag in enumerate(tags) if name in value and same_json(tag, value[name])), None)
    declared = [len(_properties(branch).keys() & value.keys()) for branch in branches]
    best = max(declared, default=0)
    return declared.index(best) if best else None


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of a schema is found in a text. One in a dialect that Python does not know matches all."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def _properties(schema: JsonValue) -> JsonObject:
    properties = schema.get("properties") if is_object(schema) else None
    return properties if is_object(properties) else {}


def _only_value(schema: JsonValue) -> tuple[JsonValue] | None:
    if not is_object(schema):
        return None
    if "const" in schema:
        return (schema["const"],)
    members = schema.get("enum")
    return (members[0],) if is_array(members) and len(members) == 1 else None
