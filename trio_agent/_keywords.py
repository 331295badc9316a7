"""What the checker's keywords do, where that is not what ``jsonschema`` does, and the words for what is wrong.

A keyword is a function that yields errors; ``validator.descend`` goes on with a part of the value and the rule for it.
``_checker.py`` is above and puts these in the place of jsonschema's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from trio_agent._json_values import is_array, is_object, json_type, same_json
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._schema_nodes import References, likely_branch, matches

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

__all__ = ["KEYWORDS", "error_text", "tolerant"]

_Errors: TypeAlias = "Iterator[ValidationError]"
Keyword: TypeAlias = Callable[[Any, Any, Any, Any], _Errors]

_MOST_MEMBERS: Final = 20


def _error(message: str, *path: str | int) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message, path=deque(path))


def tolerant(keyword: Keyword) -> Keyword:
    """A reference keyword for which one that leads nowhere only refuses what stands in its place."""

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
    return _union(validator, branches, instance, most=len(branches))


def _one_of(validator: Any, branches: list[JsonValue], instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    return _union(validator, branches, instance, most=1)


def _union(validator: Any, branches: list[JsonValue], instance: JsonValue, *, most: int) -> _Errors:  # noqa: ANN401
    # Each branch is entered at most once, and where a property tells the branches apart, only one: in unions of unions
    # anything more multiplies with every level.
    references: References = validator.format_checker.references
    if is_object(instance) and (tagged := references.discriminator(branches)) is not None and tagged[0] in instance:
        name, tags = tagged
        chosen = next((i for i, tag in enumerate(tags) if same_json(tag, instance[name])), None)
        if chosen is None:
            yield _error(f"expected one of {_members(tags)}", name)
        else:
            yield from validator.descend(instance, branches[chosen], schema_path=chosen)
        return
    fitting = 0
    failures: list[tuple[ValidationError, _Errors]] = []
    for branch in branches:
        errors = validator.descend(instance, branch)
        first = next(errors, None)
        if first is not None:
            failures.append((first, errors))
        else:
            fitting += 1
            if most == len(branches):
                return
    if fitting > most:
        yield _error("matches more than one alternative")
    elif not fitting:
        # All errors of all branches would bury the one that matters.
        yield from _likely_errors(references, branches, instance, failures)


def _likely_errors(
    references: References,
    branches: list[JsonValue],
    instance: JsonValue,
    failures: list[tuple[ValidationError, _Errors]],
) -> _Errors:
    if is_object(instance) and (tagged := references.discriminator(branches)) is not None:
        yield _error(f"expected one of {_members(tagged[1])}", tagged[0])
        return
    chosen = likely_branch(instance, [references.resolve(branch) for branch in branches])
    if chosen is None:
        depths = [len(first.absolute_path) for first, _ in failures]
        chosen = depths.index(max(depths))
    first, others = failures[chosen]
    yield first
    yield from others


def _first_error(validator: Any, instance: JsonValue, schema: JsonValue) -> ValidationError | None:  # noqa: ANN401
    return next(validator.descend(instance, schema), None)


def _enter(validator: Any, key: str, value: JsonValue, rule: JsonValue) -> _Errors:  # noqa: ANN401
    # jsonschema's own way loses the place if nothing at all is allowed there.
    if rule is False:
        yield _error("no value is allowed here", key)
    else:
        yield from validator.descend(value, rule, path=key, schema_path=key)


def _properties(validator: Any, rules: JsonObject, instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    if validator.is_type(instance, "object"):
        for key, rule in rules.items():
            if key in instance:
                yield from _enter(validator, key, instance[key], rule)


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
                    yield from _enter(validator, key, value, rule)


def _property_names(validator: Any, rule: JsonValue, instance: JsonValue, _schema: JsonObject) -> _Errors:  # noqa: ANN401
    if validator.is_type(instance, "object"):
        for name in instance:
            if _first_error(validator, name, rule) is not None:
                yield _error("invalid property name", name)


def _multiple_of(validator: Validator, divisor: float, instance: JsonValue, _schema: JsonObject) -> _Errors:
    # In decimals: 0.3 is a multiple of 0.1 to everyone but a float.
    if validator.is_type(instance, "number") and Decimal(str(instance)) % Decimal(str(divisor)):
        yield _error(f"expected a multiple of {divisor}")


KEYWORDS: Final[dict[str, Keyword]] = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "dependentRequired": _dependent_required,
    "multipleOf": _multiple_of,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
}
"""What replaces keywords of jsonschema."""

# -- words -----------------------------------------------------------------------------------------------------------


def _members(values: list[JsonValue]) -> str:
    shown = ",".join(_json(value) for value in values[:_MOST_MEMBERS])
    return f"[{shown}]" if len(values) <= _MOST_MEMBERS else f"[{shown}, ... and {len(values) - _MOST_MEMBERS} more]"


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def error_text(error: ValidationError) -> str:
    """What is wrong, without the place."""
    words = _WORDS.get(str(error.validator))
    if words is None:
        return error.message if isinstance(error.validator, str) else "no value is allowed here"
    return words(error.validator_value, error)


def _type_text(expected: JsonValue, error: ValidationError) -> str:
    names = " or ".join(expected) if is_array(expected) else expected
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
    "minContains": _contains_text,
    "maxContains": _contains_text,
    "not": lambda _, __: "must not match the schema in not",
}
