"""What a function's signature says about its arguments: a Struct to convert them to, and where the context goes.

Looks at functions, not at values: nothing here is called while a tool runs. Errors are raised when the tool is defined
and say what to do. ``_schema.py`` is above and uses what is found here.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from trio_agent._errors import ToolDefinitionError

__all__ = ["Signature", "read_signature"]

_T = TypeVar("_T")
_FORBIDDEN_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only; arguments are passed by name, so remove the '/'",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments; make it one list, such as `items: list[str]`",
    inspect.Parameter.VAR_KEYWORD: "takes any keywords; make it one dict, such as `options: dict[str, str]`",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function that a model may fill in.

    Attributes:
        struct: has one field for each of them.
        context_parameter: the name of the one that takes the context, if there is one.
        returns: the annotation of the result, ``None`` if there is none that can be resolved.
    """

    struct: type[msgspec.Struct]
    context_parameter: str | None
    returns: object


def read_signature(
    function: Callable[..., Any],
    *,
    label: str,
    context_type: type,
    is_method: bool = False,
    localns: Mapping[str, Any] | None = None,
) -> Signature:
    """Read the signature of a function.

    Args:
        function: any callable with a signature: a function, method, ``functools.partial``, callable object.
        label: names the tool in errors.
        context_type: the annotation of the parameter that the model does not see.
        is_method: the first parameter is ``self``.
        localns: names visible where the function was defined, beside its globals.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if is_method:
        parameters = parameters[1:]
    preset = function.keywords.keys() if isinstance(function, functools.partial) else ()
    scope = _Scope(function, localns)
    context_parameter = None
    fields: list[tuple[str, Any, Any]] = []
    for parameter in parameters:
        name = parameter.name
        where = f"tool {label!r}: parameter {name!r}"
        if name in preset:
            continue
        if parameter.kind in _FORBIDDEN_KINDS:
            raise ToolDefinitionError(f"{where} {_FORBIDDEN_KINDS[parameter.kind]}")
        if parameter.annotation is parameter.empty:
            raise ToolDefinitionError(f"{where} has no annotation; write its type, such as `{name}: str`")
        annotation = scope.resolve(parameter.annotation, where)
        if annotation is context_type:
            if context_parameter is not None:
                raise ToolDefinitionError(f"{where} is a second {context_type.__name__}; one is enough")
            context_parameter = name
        else:
            fields.append((name, annotation, parameter.default))
    return Signature(
        struct=_make_struct(label, fields),
        context_parameter=context_parameter,
        returns=scope.resolve_return(),
    )


def _make_struct(label: str, fields: list[tuple[str, Any, Any]]) -> type[msgspec.Struct]:
    # The default goes through a factory, so that the function gets the very object it declared, mutable or not.
    return msgspec.defstruct(
        label,
        [
            (name, annotation)
            if default is inspect.Parameter.empty
            else (name, annotation, msgspec.field(default_factory=functools.partial(_same, default)))
            for name, annotation, default in fields
        ],
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _same(value: _T) -> _T:
    return value


class _Scope:
    # Resolves the annotations of one function.
    def __init__(self, function: Callable[..., Any], localns: Mapping[str, Any] | None) -> None:
        while isinstance(function, functools.partial):
            function = function.func
        if not (inspect.isroutine(function) or inspect.isclass(function)):
            function = type(function).__call__
        self._function = inspect.unwrap(function)
        self._globals = getattr(self._function, "__globals__", None) or vars(sys.modules[self._function.__module__])
        self._locals = localns or {}

    def resolve(self, annotation: object, where: str) -> object:
        def holder() -> None: ...

        holder.__annotations__ = {"it": annotation}
        try:
            return typing.get_type_hints(holder, self._globals, dict(self._locals), include_extras=True)["it"]
        except NameError as exc:
            raise ToolDefinitionError(
                f"{where}: the annotation {annotation!r} cannot be resolved ({exc}); "
                "import or define that name at module level, above the tool and not under TYPE_CHECKING"
            ) from exc
        except (TypeError, SyntaxError, AttributeError) as exc:
            raise ToolDefinitionError(f"{where}: {annotation!r} is not a type ({exc})") from exc

    def resolve_return(self) -> object:
        annotation = getattr(self._function, "__annotations__", {}).get("return")
        try:
            return None if annotation is None else self.resolve(annotation, "the result")
        except ToolDefinitionError:
            return None
