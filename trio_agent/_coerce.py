"""Coercion: what models really send, brought into the form the schema asks for, where nothing is lost or invented.

A model writes ``"42"`` for a number, ``null`` for an option it does not want, one value for a list of one. Each rule
has only one possible reading, so that the tool gets what the model meant; whatever could be read in two ways, or would
drop a part of the value (``3.9`` as an integer, ``""`` as a number, ``true`` as 1), is left as it is and the check that
follows refuses it. What fits is never touched. Values are not modified: a changed part is rebuilt, the rest is shared.

Pure functions of value and schema; whether a value fits a branch of a union is asked of the checker, which is above.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import msgspec

from trio_agent._json_values import is_array, is_object, json_type, same_json
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._schema_nodes import References, likely_branch, matches, type_names

__all__ = ["Coercer"]

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
_LONGEST_NUMBER: Final = 400  # characters and digits; "1e999999" would be an integer of a million digits
_LARGEST_SHOWN: Final = 10**_LONGEST_NUMBER
_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


class Coercer:
    """Coerces values to one schema.

    Args:
        schema: the whole document.
        fits: whether a value is valid for a part of the document.
    """

    def __init__(self, schema: JsonObject, fits: Callable[[JsonValue, JsonValue], bool]) -> None:
        self._schema = schema
        self._fits = fits
        self._references = References(schema)
        # By value and union. Without it, unions in unions would be tried again for each branch around them. The entries
        # hold what their keys are the ids of.
        self._unions: dict[tuple[int, int], tuple[JsonValue, JsonObject, JsonValue]] = {}

    def coerce(self, value: JsonValue) -> JsonValue:
        """The value in the form that the schema asks for, as far as it can be brought into it."""
        try:
            return self._coerce(value, self._schema)
        finally:
            self._unions.clear()

    def _coerce(self, value: JsonValue, schema: JsonValue) -> JsonValue:
        target = self._references.resolve(schema)
        if target is not schema and len(schema) > 1:  # keywords beside `$ref` hold as well
            value = self._coerce(value, {key: rule for key, rule in schema.items() if key != "$ref"})
        if not is_object(target):
            return value
        members = [target["const"]] if "const" in target else target.get("enum")
        if is_array(members):
            return _member(value, members)
        value = self._coerce_combined(value, target)
        if wanted := type_names(target):
            value = self._coerce_type(value, wanted, target)
        if is_object(value):
            return self._coerce_object(value, target)
        return self._coerce_array(value, target) if is_array(value) else value

    def _coerce_combined(self, value: JsonValue, schema: JsonObject) -> JsonValue:
        for keyword in ("anyOf", "oneOf"):
            if is_array(branches := schema.get(keyword)):
                key = (id(value), id(branches))
                if key not in self._unions:
                    self._unions[key] = (value, schema, self._coerce_union(value, branches, schema))
                value = self._unions[key][2]
        for part in schema.get("allOf", ()):
            value = self._coerce(value, part)
        return value

    def _coerce_union(self, value: JsonValue, branches: list[JsonValue], schema: JsonObject) -> JsonValue:
        for branch in branches:
            if self._fits(value, branch):
                return self._coerce(value, branch)  # fits, but a 3.0 in it may stand for an integer
        for branch in branches:
            coerced = self._coerce(value, branch)
            if coerced is not value and self._fits(coerced, branch) and self._fits(coerced, schema):
                return coerced
        # None can be reached. What the model meant is brought as near as it gets, so that only real errors are told.
        likely = likely_branch(value, [self._references.resolve(branch) for branch in branches])
        return value if likely is None else self._coerce(value, branches[likely])

    def _coerce_type(self, value: JsonValue, wanted: tuple[str, ...], schema: JsonObject) -> JsonValue:
        given = json_type(value)
        if given in wanted or (given == "integer" and "number" in wanted):
            whole = isinstance(value, float) and "integer" in wanted and "number" not in wanted
            return int(value) if whole else value
        if isinstance(value, str) and value.lstrip()[:1] in {"[", "{"} and not {"array", "object"}.isdisjoint(wanted):
            return _decoded(value, wanted)
        for name in wanted:
            if name == "array":
                coerced = self._wrapped(value, schema)
            else:
                coerced = _SCALARS[name](value) if name in _SCALARS else value
            if coerced is not value:
                return coerced
        return value

    def _wrapped(self, value: JsonValue, schema: JsonObject) -> JsonValue:
        # A list of one, if that is what the schema wants: a tuple has places, and no one can say which this is.
        if value is None or "prefixItems" in schema or is_array(schema.get("items")):
            return value
        wrapped = self._coerce_array([value], schema)
        return wrapped if self._fits(wrapped, schema) else value

    def _coerce_object(self, value: JsonObject, schema: JsonObject) -> JsonObject:
        properties = schema.get("properties")
        properties = properties if is_object(properties) else {}
        required = schema.get("required", ())
        changed: JsonObject = {}
        dropped: set[str] = set()
        for key, item in value.items():
            rules = [properties[key]] if key in properties else _rules_of_undeclared(key, schema)
            if key in properties and item is None and key not in required and not self._fits(None, properties[key]):
                dropped.add(key)
                continue
            coerced = item
            for rule in rules:
                coerced = self._coerce(coerced, rule)
            if coerced is not item:
                changed[key] = coerced
        if not changed and not dropped:
            return value
        return {key: changed.get(key, item) for key, item in value.items() if key not in dropped}

    def _coerce_array(self, value: list[JsonValue], schema: JsonObject) -> list[JsonValue]:
        items = schema.get("items")
        prefix = schema.get("prefixItems", items if is_array(items) else ())
        rest = schema.get("additionalItems") if is_array(items) else items
        coerced = [
            self._coerce(item, prefix[index] if index < len(prefix) else rest) for index, item in enumerate(value)
        ]
        return coerced if any(new is not old for new, old in zip(coerced, value, strict=True)) else value


def _rules_of_undeclared(key: str, schema: JsonObject) -> list[JsonValue]:
    patterns = schema.get("patternProperties")
    rules = []
    if is_object(patterns):
        rules = [rule for pattern, rule in patterns.items() if matches(pattern, key)]
    return rules or [schema.get("additionalProperties")]


def _decoded(text: str, wanted: tuple[str, ...]) -> JsonValue:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if json_type(value) in wanted else text


def _member(value: JsonValue, members: list[JsonValue]) -> JsonValue:
    # The one member that is the same written in another type, such as "2" for 2.
    if any(same_json(value, member) for member in members):
        return value
    candidates = [
        member
        for member in members
        if (coerce := _SCALARS.get(json_type(member))) is not None
        and (coerced := coerce(value)) is not value
        and same_json(coerced, member)
    ]
    return candidates[0] if len(candidates) == 1 else value


# What follows returns its argument, the very object, if it has no other form of the type.


def _to_number(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text := value.strip()):
        return value
    if _WHOLE.fullmatch(text):
        return int(text)
    number = float(text)
    return number if math.isfinite(number) else value


def _to_integer(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text := value.strip()):
        return value
    try:
        number = Decimal(text)
    except ArithmeticError:
        return value
    if number.adjusted() > _LONGEST_NUMBER or number != number.to_integral_value():
        return value
    return int(number)


def _to_boolean(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower(), value)
    return bool(value) if isinstance(value, int | float) and value in {0, 1} else value


def _to_string(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < _LARGEST_SHOWN else value
    return repr(value) if isinstance(value, float) and math.isfinite(value) else value


def _to_null(value: JsonValue) -> JsonValue:
    return None if isinstance(value, str) and value.strip() == "null" else value


_SCALARS: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "number": _to_number,
    "integer": _to_integer,
    "boolean": _to_boolean,
    "string": _to_string,
    "null": _to_null,
}
