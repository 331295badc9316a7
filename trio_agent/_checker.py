"""Whether a value is valid for a JSON Schema, and if not, what is wrong, in the words that a model gets.

``jsonschema`` does the work, with some keywords replaced: unions look at their branches lazily and explain only the one
that was meant, a reference that leads nowhere refuses only what stands in its place, nothing is ever fetched, numbers
must be finite, and patterns that Python cannot read are not held against the value. jsonschema is imported when the
first value is checked: many programs never need it.

Coercion is above and only asks ``fits``.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, time
from decimal import Decimal
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from trio_agent._errors import ToolDefinitionError
from trio_agent._json_schema import json_type
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._schema_nodes import References, discriminator, likely_branch, matches, type_names

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["Checker", "check_schema", "non_finite"]

_Errors: TypeAlias = "Iterator[ValidationError]"
_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], _Errors]

_MOST_PROBLEMS: Final = 50
_MOST_MEMBERS: Final = 20


class Checker:
    """Checks values against one schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    @cached_property
    def _validator(self) -> Any:  # noqa: ANN401  # the protocol of jsonschema lacks `descend`
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        # Without the keyword, jsonschema would swap our class for its own wherever the document refers to its root.
        document = {key: value for key, value in self._schema.items() if key != "$schema"}
        draft = _draft(self._schema)
        formats = _formats_class()(formats=())
        formats.checkers = _format_checkers(draft)
        formats.references = References(document)
        return _validator_class(draft)(document, registry=REGISTRY, format_checker=formats)

    def is_valid(self, value: JsonValue) -> bool:
        """Whether a value is valid for the whole schema."""
        return next(self._validator.iter_errors(value), None) is None

    def fits(self, value: JsonValue, schema: JsonValue) -> bool:
        """Whether a value is valid for a part of the schema."""
        if value is None and isinstance(schema, dict) and (names := type_names(schema)) and "null" not in names:
            return False  # the commonest question, answered without jsonschema
        return next(self._validator.descend(value, schema), None) is None

    def problems(self, value: JsonValue) -> list[str]:
        """What is wrong with a value, one line each, with its path; the first fifty at most."""
        errors = list(islice(self._validator.iter_errors(value), _MOST_PROBLEMS))
        # What else is said of a value of the wrong type is noise.
        mistyped = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
        return [
            f"{path_text(error.absolute_path)}: {_text(error)}"
            for error in errors
            if error.validator == "type" or tuple(error.absolute_path) not in mistyped
        ]


def check_schema(schema: JsonObject, where: str) -> None:
    """Refuse what is no JSON Schema.

    Raises:
        ToolDefinitionError: it says where in the schema and why.
    """
    from jsonschema.exceptions import SchemaError

    try:
        # Without formats: a pattern in JavaScript's dialect is no reason to refuse a server's schema.
        _validator_class(_draft(schema)).check_schema(schema, format_checker=None)
    except SchemaError as exc:
        place = path_text(exc.absolute_path)
        raise ToolDefinitionError(f"{where}: no valid JSON Schema: at {place}: {exc.message}") from exc


def path_text(path: Iterable[str | int]) -> str:
    """A path as models get it: ``edits.0.text``."""
    return ".".join(map(str, path)) or "root"


def non_finite(value: JsonValue, path: tuple[str | int, ...] = ()) -> tuple[str | int, ...] | None:
    """The path of a number that JSON cannot express, if there is one."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    if isinstance(value, dict):
        items: Iterable[tuple[str | int, JsonValue]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return None
    for key, item in items:
        if isinstance(item, dict | list | float) and (found := non_finite(item, (*path, key))) is not None:
            return found
    return None


def _draft(schema: JsonObject) -> Any:  # noqa: ANN401  # a class of jsonschema
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


@cache
def _validator_class(draft: Any) -> Any:  # noqa: ANN401
    from jsonschema import validators

    known = draft.VALIDATORS
    replaced: dict[str, _Keyword] = {
        "$ref": _tolerant(known["$ref"]),
        "additionalProperties": _additional_properties,
        "anyOf": _any_of,
        "multipleOf": _multiple_of,
        "oneOf": _one_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "required": _required,
    }
    if "$dynamicRef" in known:
        replaced["$dynamicRef"] = _tolerant(known["$dynamicRef"])
    if "dependentRequired" in known:
        replaced["dependentRequired"] = _dependent_required
    checker = draft.TYPE_CHECKER.redefine("number", _is_number)
    extend: Any = validators.extend
    return extend(draft, {key: rule for key, rule in replaced.items() if key in known}, type_checker=checker)


@cache
def _formats_class() -> Any:  # noqa: ANN401
    from jsonschema import FormatChecker

    class Formats(FormatChecker):
        # The one thing that jsonschema hands down from a validator to those of its parts, and so the carrier of the
        # document's references.
        references: References

    return Formats


@cache
def _format_checkers(draft: Any) -> JsonObject:  # noqa: ANN401
    # jsonschema knows the first three only with further packages installed.
    ours: JsonObject = {"date-time": (_is_date_time, ()), "time": (_is_time, ()), "uri": (_is_uri, ())}
    return {**ours, **draft.FORMAT_CHECKER.checkers}


def _is_number(_checker: object, value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and (type(value) is int or math.isfinite(value))
    )


def _is_date_time(value: object) -> bool:
    return not isinstance(value, str) or _has_zone(value, datetime)


def _is_time(value: object) -> bool:
    return not isinstance(value, str) or _has_zone(value, time)


def _has_zone(text: str, kind: type[datetime | time]) -> bool:
    try:
        return msgspec.convert(text, kind).tzinfo is not None
    except msgspec.ValidationError:
        return False


def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S*", value) is not None


# -- keywords that replace jsonschema's ------------------------------------------------------------------------------


def _error(message: str, *path: str | int) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message, path=deque(path))


def _tolerant(keyword: _Keyword) -> _Keyword:
    def follow(validator: Any, reference: str, instance: JsonValue, schema: JsonObject) -> _Errors:  # noqa: ANN401
        from referencing.exceptions import Unresolvable

        try:
            yield from keyword(validator, reference, instance, schema)
        except Unresolvable:
            yield _error(f"unresolved reference {reference}")
        except RecursionError:
            yield _error(f"the reference {reference} goes too deep")

    return follow


def _any_of(validator: Any, branches: list[JsonValue], instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    if not any(_first_error(validator, instance, branch) is None for branch in branches):
        yield from _explained(validator, branches, instance)


def _one_of(validator: Any, branches: list[JsonValue], instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    fitting = sum(_first_error(validator, instance, branch) is None for branch in branches)
    if fitting > 1:
        yield _error("matches more than one alternative")
    elif not fitting:
        yield from _explained(validator, branches, instance)


def _first_error(validator: Any, instance: JsonValue, schema: JsonValue) -> ValidationError | None:  # noqa: ANN401
    return next(validator.descend(instance, schema), None)


def _explained(validator: Any, branches: list[JsonValue], instance: JsonValue) -> _Errors:  # noqa: ANN401
    # All errors of all branches would bury the one that matters.
    resolved = [validator.format_checker.references.resolve(branch) for branch in branches]
    chosen = likely_branch(instance, resolved)
    if chosen is None and isinstance(instance, dict) and (found := discriminator(resolved)) is not None:
        yield _error(f"expected one of {_members(found[1])}", found[0])
        return
    if chosen is None:
        depths = [len(error.absolute_path) if (error := _first_error(validator, instance, b)) else 0 for b in branches]
        chosen = depths.index(max(depths))
    yield from validator.descend(instance, branches[chosen], schema_path=chosen)


def _required(validator: Validator, names: list[str], instance: JsonValue, _schema: JsonObject) -> _Errors:
    if validator.is_type(instance, "object"):
        yield from (_error("missing", name) for name in names if name not in instance)


def _dependent_required(validator: Validator, rules: JsonObject, instance: JsonValue, _schema: JsonObject) -> _Errors:
    if validator.is_type(instance, "object"):
        for present, names in rules.items():
            if present in instance:
                yield from (
                    _error(f"required when {present} is present", name) for name in names if name not in instance
                )


def _additional_properties(validator: Any, rule: JsonValue, instance: JsonValue, schema: JsonObject) -> _Errors:  # noqa: ANN401
    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in known or any(matches(pattern, key) for pattern in patterns):
            continue
        if rule is False:
            hint = f" (known: {', '.join(known)})" if known and len(known) <= _MOST_MEMBERS else ""
            yield _error(f"unknown field{hint}", key)
        else:
            yield from validator.descend(value, rule, path=key)


def _pattern(validator: Validator, pattern: str, instance: JsonValue, _schema: JsonObject) -> _Errors:
    if validator.is_type(instance, "string") and not matches(pattern, instance):
        yield _error(f"expected to match {pattern}")


def _pattern_properties(validator: Any, rules: JsonObject, instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    if validator.is_type(instance, "object"):
        for pattern, rule in rules.items():
            for key, value in instance.items():
                if matches(pattern, key):
                    yield from validator.descend(value, rule, path=key, schema_path=pattern)


def _multiple_of(validator: Validator, divisor: float, instance: JsonValue, _schema: JsonObject) -> _Errors:
    # In decimals: 0.3 is a multiple of 0.1 to everyone but a float.
    if validator.is_type(instance, "number") and Decimal(str(instance)) % Decimal(str(divisor)):
        yield _error(f"expected a multiple of {divisor}")


# -- words -----------------------------------------------------------------------------------------------------------


def _members(values: list[JsonValue]) -> str:
    shown = ",".join(_json(value) for value in values[:_MOST_MEMBERS])
    return f"[{shown}]" if len(values) <= _MOST_MEMBERS else f"[{shown}, ... and {len(values) - _MOST_MEMBERS} more]"


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def _text(error: ValidationError) -> str:
    words = _WORDS.get(str(error.validator))
    if words is None:
        return "no value is allowed here" if error.validator is None else error.message
    return words(error.validator_value, error)


def _type_text(expected: JsonValue, error: ValidationError) -> str:
    names = " or ".join(expected) if isinstance(expected, list) else expected
    value = error.instance
    given = str(value) if isinstance(value, float) and not math.isfinite(value) else json_type(value)
    return f"expected {names}, got {given}"


def _contains_text(_: JsonValue, error: ValidationError) -> str:
    schema: JsonValue = error.schema
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    if most is None:
        return f"expected at least {least} matching {'item' if least == 1 else 'items'}"
    return f"expected between {least} and {most} matching items"


def _count(words: str, one: str, many: str) -> Callable[[JsonValue, ValidationError], str]:
    return lambda number, _: f"expected {words} {number} {one if number == 1 else many}"


_WORDS: Final[dict[str, Callable[[JsonValue, ValidationError], str]]] = {
    "type": _type_text,
    "enum": lambda members, _: f"expected one of {_members(members)}",
    "const": lambda value, _: f"expected {_json(value)}",
    "propertyNames": lambda _, error: f"invalid property name {_json(error.instance)}",
    "minLength": _count("at least", "characters", "characters"),
    "maxLength": _count("at most", "characters", "characters"),
    "format": lambda name, _: f"expected format {name}",
    "minimum": lambda number, _: f"expected >= {number}",
    "maximum": lambda number, _: f"expected <= {number}",
    "exclusiveMinimum": lambda number, _: f"expected > {number}",
    "exclusiveMaximum": lambda number, _: f"expected < {number}",
    "minItems": _count("at least", "items", "items"),
    "maxItems": _count("at most", "items", "items"),
    "minProperties": _count("at least", "properties", "properties"),
    "maxProperties": _count("at most", "properties", "properties"),
    "uniqueItems": lambda _, __: "expected unique items",
    "contains": _contains_text,
    "not": lambda _, __: "must not match the schema in not",
}
