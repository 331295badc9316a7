"""What a function's signature says: its parameters with their types, defaults and texts, and where the context goes.

Looks at functions when tools are made of them; nothing here runs when a tool is called. What cannot be a tool is
refused with an error that names the parameter and says what to do. ``_schema.py`` is above and uses what is found.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

import msgspec
from msgspec import inspect as types

from trio_agent._docstrings import Docstring
from trio_agent._errors import ToolDefinitionError

__all__ = [
    "NO_DEFAULT",
    "Annotation",
    "Parameter",
    "Signature",
    "is_path",
    "read_signature",
    "subtypes",
    "underlying_function",
]

NO_DEFAULT = inspect.Parameter.empty

Annotation: TypeAlias = Any
"""A type as it stands in a signature: a class, a union, ``Annotated``."""

_FORBIDDEN_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, but a model gives arguments by name; remove the '/'",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values; make it one list, such as `items: list[str]`",
    inspect.Parameter.VAR_KEYWORD: "takes any keywords; make it one dict, such as `options: dict[str, str]`",
}
_SUPPORTED = (
    "JSON's own types, list, tuple, set, dict, Optional, Literal, Enum, datetime, date, UUID, Decimal, Path, "
    "dataclasses, TypedDict, NamedTuple and msgspec.Struct"
)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter that the model may fill in.

    Attributes:
        name: of the parameter and of the property in the schema.
        annotation: its type, resolved.
        info: the same as msgspec sees it.
        default: ``NO_DEFAULT`` if there is none.
        description: for the model.
    """

    name: str
    annotation: Annotation
    info: types.Type
    default: Any
    description: str | None


class Signature(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        parameters: in source order, without the context.
        context_parameter: the name of the parameter that takes the context, if there is one.
        returns: the annotation of the result; ``NO_DEFAULT`` if there is none, or none that can be resolved.
    """

    parameters: tuple[Parameter, ...]
    context_parameter: str | None
    returns: Annotation


def underlying_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The plain function that a call of a callable ends in: below partials, methods, callable objects and wrappers."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    plain: Callable[..., Any] = inspect.unwrap(function)
    return plain


def read_signature(
    function: Callable[..., Any],
    *,
    tool_name: str,
    docstring: Docstring,
    context_type: type,
    is_method: bool = False,
    local_names: Mapping[str, Any] | None = None,
) -> Signature:
    """Read the signature of a function, method, ``functools.partial`` or callable object.

    Args:
        function: the callable.
        tool_name: for errors.
        docstring: texts about parameters, for those that have no text in their annotation.
        context_type: annotation of the parameter that the model does not see.
        is_method: the first parameter is ``self``.
        local_names: what can be named in annotations beside the globals of the function.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """
    try:
        declared = list(inspect.signature(function).parameters.values())
    except ValueError as exc:
        raise ToolDefinitionError(f"tool {tool_name!r}: {exc}; wrap it in a function with annotations") from exc
    preset = _preset(function)
    scope = _Scope(function, local_names or {}, context_type)
    parameters: list[Parameter] = []
    context_parameter = None
    for parameter in declared[is_method:]:
        where = f"tool {tool_name!r}: parameter {parameter.name!r}"
        if parameter.name in preset:
            continue
        if parameter.kind in _FORBIDDEN_KINDS:
            raise ToolDefinitionError(f"{where} {_FORBIDDEN_KINDS[parameter.kind]}")
        if parameter.annotation is parameter.empty:
            raise ToolDefinitionError(f"{where} has no type; annotate it, such as `{parameter.name}: str`")
        annotation = scope.resolve(parameter.annotation, where)
        if not _is_context(annotation, context_type):
            parameters.append(_parameter(parameter, annotation, docstring, where))
        elif context_parameter is None:
            context_parameter = parameter.name
        else:
            raise ToolDefinitionError(f"{where} is a second {context_type.__name__}; remove it, one is enough")
    return Signature(tuple(parameters), context_parameter, scope.resolve_return())


def _preset(function: Callable[..., Any]) -> frozenset[str]:
    # What a partial has filled in is the application's own (a key, a client): the model neither sees nor changes it.
    return frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()


def _is_context(annotation: object, context_type: type) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        return context_type in get_args(annotation)
    return annotation is context_type


def _parameter(
    parameter: inspect.Parameter,
    annotation: Annotation,
    docstring: Docstring,
    where: str,
) -> Parameter:
    try:
        info = types.type_info(annotation)
    except (TypeError, NameError) as exc:
        raise ToolDefinitionError(f"{where}: {exc}{_advice(str(exc))}") from exc
    for part in subtypes(info):
        if isinstance(part, types.CustomType | types.ExtType) and not is_path(getattr(part, "cls", None)):
            name = getattr(getattr(part, "cls", part), "__name__", repr(part))
            raise ToolDefinitionError(f"{where}: values of type {name} do not exist in JSON; use {_SUPPORTED}")
    description = _annotated_text(annotation) or docstring.parameters.get(parameter.name)
    return Parameter(parameter.name, annotation, info, parameter.default, description or None)


def is_path(cls: object) -> bool:
    """Whether a class is one of the path types, which JSON holds as text."""
    return isinstance(cls, type) and issubclass(cls, PurePath)


def _annotated_text(annotation: object) -> str | None:
    if get_origin(annotation) is not Annotated:
        return None
    for item in get_args(annotation)[1:]:
        if isinstance(item, str):
            return item
        if isinstance(item, msgspec.Meta) and item.description:
            return item.description
    return None


def _advice(message: str) -> str:
    # msgspec says what is wrong; this says what to do.
    if "name '" in message and "is not defined" in message:
        return "; define or import that name at module level, before the tool and not under TYPE_CHECKING"
    if "more than one dict-like type" in message or "must be tagged" in message or "may not contain" in message:
        return "; make the alternatives msgspec.Struct classes with `tag=True`, or give each its own tool"
    return f"; use {_SUPPORTED}"


def subtypes(info: types.Type) -> Iterator[types.Type]:
    """A type and all types in it, each class once."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        for name in part.__struct_fields__:
            waiting += _types_in(getattr(part, name))


def _types_in(value: object) -> list[types.Type]:
    if isinstance(value, types.Type):
        return [value]
    if isinstance(value, types.Field):
        return [value.type]
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return [found for item in items for found in _types_in(item)]
    return []


class _Scope:
    # Resolves the annotations of one function, one at a time, so that an error can name the parameter.

    def __init__(self, function: Callable[..., Any], local_names: Mapping[str, Any], context_type: type) -> None:
        plain = underlying_function(function)
        module = sys.modules.get(plain.__module__)
        self._annotations: Mapping[str, Any] = getattr(plain, "__annotations__", {})
        self._globals: dict[str, Any] = getattr(plain, "__globals__", vars(module) if module is not None else {})
        self._locals = dict(local_names)
        self._context_type = context_type

    def resolve(self, annotation: object, where: str) -> Annotation:
        context_name = self._context_type.__name__
        if isinstance(annotation, str) and re.fullmatch(rf"(\w+\.)*{context_name}(\s*\|\s*None)?", annotation):
            return self._context_type  # often imported for type checkers only
        holder = type("holder", (), {"__annotations__": {"it": annotation}})
        try:
            return typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)["it"]
        except NameError as exc:
            raise ToolDefinitionError(f"{where}: {annotation!r} cannot be resolved: {exc}{_advice(str(exc))}") from exc
        except (TypeError, SyntaxError, AttributeError) as exc:
            raise ToolDefinitionError(f"{where}: {annotation!r} is not a type ({exc}); use {_SUPPORTED}") from exc

    def resolve_return(self) -> Annotation:
        if "return" not in self._annotations:
            return NO_DEFAULT
        try:
            return self.resolve(self._annotations["return"], "the result")
        except ToolDefinitionError:
            return NO_DEFAULT
