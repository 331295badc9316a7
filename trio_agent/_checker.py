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
from collections.abc import Callable, Iterable
from datetime import datetime, time
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from trio_agent._errors import ToolDefinitionError
from trio_agent._json_values import is_array, is_object, json_type
from trio_agent._keywords import KEYWORDS, error_text, tolerant
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._schema_nodes import References, type_names

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["Checker", "check_schema", "non_finite"]

_MOST_PROBLEMS: Final = 50
_ANNOTATIONS: Final = {"type", "title", "description", "default", "examples"}


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
        easy = _fits_easily(value, schema) if is_object(schema) else None
        return next(self._validator.descend(value, schema), None) is None if easy is None else easy

    def problems(self, value: JsonValue) -> list[str]:
        """What is wrong with a value, one line each, with its path; the first fifty at most."""
        errors: list[ValidationError] = list(islice(self._validator.iter_errors(value), _MOST_PROBLEMS))
        # What else is said of a value of the wrong type is noise.
        mistyped = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
        return [
            f"{path_text(error.absolute_path)}: {error_text(error)}"
            for error in errors
            if error.validator == "type" or tuple(error.absolute_path) not in mistyped
        ]


def _fits_easily(value: JsonValue, schema: JsonObject) -> bool | None:
    # The commonest questions, answered without jsonschema; `None` if that is not possible.
    if names := type_names(schema):
        given = json_type(value)
        if given not in names and not (given == "integer" and "number" in names):
            return False
        return non_finite(value) is None if schema.keys() <= _ANNOTATIONS else None
    branches = schema.get("anyOf")
    if not is_array(branches) or not schema.keys() <= _ANNOTATIONS | {"anyOf"}:
        return None
    answers = [_fits_easily(value, branch) if is_object(branch) else None for branch in branches]
    return True if True in answers else None if None in answers else False


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
    if is_object(value):
        items: Iterable[tuple[str | int, JsonValue]] = value.items()
    elif is_array(value):
        items = enumerate(value)
    else:
        return None
    for key, item in items:
        if isinstance(item, (dict, list, float)) and (found := non_finite(item, (*path, key))) is not None:
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
    replaced = {name: keyword for name, keyword in KEYWORDS.items() if name in known}
    replaced |= {name: tolerant(known[name]) for name in ("$ref", "$dynamicRef") if name in known}
    checker = draft.TYPE_CHECKER.redefine("number", _is_number)
    extend = cast("Callable[..., Any]", validators.extend)  # pyright: ignore[reportUnknownMemberType]
    return extend(draft, replaced, type_checker=checker)


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
