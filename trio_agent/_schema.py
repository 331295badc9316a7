"""Arguments of a call: checked against what the tool declares, and brought into the form its body takes.

Two kinds of tools, one interface. ``SignatureArguments`` converts to the types of a function's parameters,
``SchemaArguments`` checks any JSON Schema; both coerce what does not fit at first, in the same way. Pure logic, made of
``_json_schema.py``, ``_coerce.py`` and ``_checker.py``; ``_tools.py`` is above.

A call that fits as it came, which is nearly every one, costs a function tool one conversion and nothing else.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Final, Protocol, TypeAlias, Union, cast, get_args, get_origin

import msgspec
from msgspec import inspect as types

from trio_agent._checker import Checker, check_schema, non_finite, path_text
from trio_agent._coerce import Coercer
from trio_agent._errors import ToolArgumentsError, ToolDefinitionError
from trio_agent._json_schema import decode_extra, parameters_schema
from trio_agent._json_values import is_array, is_object, json_type
from trio_agent._messages import JsonObject, JsonValue
from trio_agent._signature import NO_DEFAULT, Annotation, Parameter, subtypes
from trio_agent._text import clean_text, shortened

__all__ = ["Arguments", "Binder", "BoundArguments", "SchemaArguments", "SignatureArguments", "reworded"]

_LONGEST_FAILURE: Final = 1500
_LONGEST_PROBLEMS: Final = 900
_LONGEST_PROBLEM: Final = 300
_CONTAINERS: Final[tuple[Any, ...]] = (list, tuple, dict, set, frozenset)


Binder: TypeAlias = "Callable[[JsonObject], BoundArguments]"


class BoundArguments(msgspec.Struct):
    """Arguments that fit.

    Attributes:
        value: what the body of the tool takes; it shares nothing mutable with the call's message or with ``arguments``.
    """

    _source: JsonObject
    value: Any
    _arguments: JsonObject | None = None

    @property
    def arguments(self) -> JsonObject:
        """The arguments as JSON, coerced: a fresh object, made when it is first asked for, as few calls need it."""
        if self._arguments is None:
            self._arguments = cast("JsonObject", msgspec.to_builtins(self._source))
        return self._arguments


class Arguments(Protocol):
    """What a tool declares about its arguments."""

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the arguments, the same object each time."""
        ...

    def binder(self, tool_name: str) -> Binder:
        """The function that checks the arguments of a call and brings them into the form the body takes.

        It does not modify them, and raises ``ToolArgumentsError`` with a text for the model if they do not fit.
        """
        ...


class SignatureArguments:
    """The parameters of a function, as a Struct with one field for each."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = tuple(parameters)
        self._struct = msgspec.defstruct(
            "Arguments",
            [_field(parameter) for parameter in self._parameters],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        self._convert = _converter(self._struct)

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the parameters."""
        return self._schema

    @cached_property
    def _schema(self) -> JsonObject:
        return parameters_schema(self._parameters)

    @cached_property
    def _checker(self) -> Checker:
        return Checker(self.schema)

    def binder(self, tool_name: str) -> Binder:
        """See ``Arguments.binder``."""
        convert = self._convert
        bind_coerced = self._bind_coerced
        if convert is None:
            struct = self._struct
            convert_plain = msgspec.convert

            def bind_plain(arguments: JsonObject) -> BoundArguments:
                try:
                    return BoundArguments(arguments, convert_plain(arguments, struct))
                except (msgspec.ValidationError, RecursionError):
                    return bind_coerced(tool_name, arguments)

            return bind_plain

        def bind(arguments: JsonObject) -> BoundArguments:
            try:
                return BoundArguments(arguments, convert(arguments))
            except (msgspec.ValidationError, RecursionError):
                return bind_coerced(tool_name, arguments)

        return bind

    def _bind_coerced(self, tool_name: str, arguments: JsonObject) -> BoundArguments:
        given = _as_object(tool_name, arguments)
        try:
            coerced = Coercer(self.schema, self._checker.fits).coerce(given)
            try:
                value = msgspec.convert(coerced, self._struct) if self._convert is None else self._convert(coerced)
            except msgspec.ValidationError as exc:
                # The schema tells all that is wrong, msgspec only the first; but not all rules are in the schema.
                problems = self._checker.problems(coerced) or [reworded(exc)]
                raise ToolArgumentsError(_failure(tool_name, problems, arguments)) from None
        except RecursionError:
            raise _too_deep(tool_name) from None
        return BoundArguments(coerced, value)


def _converter(struct: type[msgspec.Struct]) -> Callable[[JsonObject], msgspec.Struct] | None:
    # With no more options than the types need, as each costs as much as a field; `None` if they need none.
    parts = list(subtypes(types.type_info(struct)))
    options: dict[str, Any] = {}
    if any(isinstance(part, types.CustomType) for part in parts):
        options["dec_hook"] = decode_extra
    if any(isinstance(part, types.DictType) and not isinstance(part.key_type, types.StrType) for part in parts):
        options["str_keys"] = True
    convert: Callable[[Any], msgspec.Struct] = functools.partial(msgspec.convert, type=struct, **options)
    is_open = any(isinstance(part, types.AnyType) for part in parts)
    if not is_open and all(_is_bounded(part) for part in parts if isinstance(part, types.FloatType)):
        return convert if options else None

    def careful(arguments: JsonObject) -> msgspec.Struct:
        if (path := non_finite(arguments)) is not None:
            raise msgspec.ValidationError(f"not a JSON number - at `$.{path_text(path)}`")
        # Values of an open type are taken over as they are, so the call's own must not be among them.
        return convert(msgspec.to_builtins(arguments) if is_open else arguments)

    return careful


def _is_bounded(number: types.FloatType) -> bool:
    return (number.ge, number.gt) != (None, None) and (number.le, number.lt) != (None, None)


def _finite(annotation: Annotation) -> Annotation:
    # msgspec takes NaN and the infinities for floats unless there are bounds, which cost nothing.
    origin: Any = get_origin(annotation)
    args = get_args(annotation)
    if annotation is float:
        return Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
    if origin in {Union, UnionType}:
        return Union[tuple(_finite(arg) for arg in args)]  # noqa: UP007
    if origin in _CONTAINERS:
        return origin[tuple(_finite(arg) for arg in args)]
    return annotation


def _field(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    annotation = _finite(parameter.annotation)
    if parameter.default is NO_DEFAULT:
        return parameter.name, annotation
    # Through a factory, so that the function gets the very object that it declared, mutable or not.
    return parameter.name, annotation, msgspec.field(default_factory=functools.partial(_same, parameter.default))


def _same(value: Any) -> Any:  # noqa: ANN401
    return value


def reworded(exc: msgspec.ValidationError) -> str:
    """What msgspec says of a value, in the form in which models get all problems."""
    message, _, path = str(exc).partition(" - at ")
    path = path.strip("`").removeprefix("$").replace("[...]", ".*").replace("[", ".").replace("]", "").strip(".")
    return f"{path or 'root'}: {message[:1].lower()}{message[1:]}"


class SchemaArguments:
    """Arguments described by a JSON Schema.

    Raises:
        ToolDefinitionError: it is none, or not one of an object.
    """

    def __init__(self, tool_name: str, schema: JsonObject) -> None:
        where = f"tool {tool_name!r}: parameters"
        if not is_object(schema):
            raise ToolDefinitionError(
                f"{where} must be a JSON Schema in a dict, not {type(schema).__name__}; "
                "to have it made from a function's annotations, use @tool"
            )
        check_schema(schema, where)
        named = schema.get("type", "object")
        if "object" not in ([named] if isinstance(named, str) else named):
            raise ToolDefinitionError(
                f"{where} are of type {named!r}, but the arguments of a call are an object; "
                'write {"type": "object", "properties": {...}}'
            )
        self.schema = schema
        self._checker = Checker(schema)

    def binder(self, tool_name: str) -> Binder:
        """See ``Arguments.binder``."""

        def bind(arguments: JsonObject) -> BoundArguments:
            try:
                return self._bind(tool_name, arguments)
            except RecursionError:
                raise _too_deep(tool_name) from None

        return bind

    def _bind(self, tool_name: str, arguments: JsonObject) -> BoundArguments:
        fitting = _as_object(tool_name, arguments)
        if (path := non_finite(fitting)) is not None:
            raise ToolArgumentsError(_failure(tool_name, [f"{path_text(path)}: not a JSON number"], arguments))
        if not self._checker.is_valid(fitting) or _has_whole_float(fitting):
            fitting = Coercer(self.schema, self._checker.fits).coerce(fitting)
            if problems := self._checker.problems(fitting):
                raise ToolArgumentsError(_failure(tool_name, problems, arguments))
        return BoundArguments(fitting, msgspec.to_builtins(fitting))


def _has_whole_float(value: JsonValue) -> bool:
    # Valid as an integer, but the tool is to get an integer.
    if isinstance(value, float):
        return value.is_integer()
    items = value.values() if is_object(value) else value if is_array(value) else ()
    return any(isinstance(item, (dict, list, float)) and _has_whole_float(item) for item in items)


def _too_deep(tool_name: str) -> ToolArgumentsError:
    return ToolArgumentsError(_failure(tool_name, ["root: the arguments are nested too deeply"], "[...]"))


def _as_object(tool_name: str, arguments: JsonValue) -> JsonObject:
    if arguments is None or arguments == "":
        return {}
    if not is_object(arguments):
        problem = f"root: the arguments must be an object, got {json_type(arguments)}"
        raise ToolArgumentsError(_failure(tool_name, [problem], arguments))
    return arguments


def _failure(tool_name: str, problems: list[str], arguments: JsonValue) -> str:
    lines: list[str] = []
    room = _LONGEST_PROBLEMS
    for count, problem in enumerate(problems):
        line = f"  - {shortened(problem, _LONGEST_PROBLEM)}"
        room -= len(line)
        if room < 0:
            lines.append(f"  - ... and {len(problems) - count} more")
            break
        lines.append(line)
    head = f'Validation failed for tool "{tool_name}":\n' + "\n".join(lines) + "\n\nReceived arguments:\n"
    return clean_text(head + _shown(arguments, _LONGEST_FAILURE - len(head)))


def _shown(arguments: JsonValue, most: int) -> str:
    import json

    # No more of them is written than is shown.
    written: list[str] = []
    length = 0
    try:
        for part in json.JSONEncoder(indent=2, ensure_ascii=False, default=repr).iterencode(arguments):
            written.append(part)
            length += len(part)
            if length > most:
                break
    except ValueError:  # an integer of more digits than Python writes
        return "(they cannot be shown)"
    return shortened("".join(written), most)
