"""``tool``: makes a tool of a function, from its name, its docstring and its annotations.

``Tool`` itself is below, in ``_tool_type.py``; this is also where the loop and the library's tools import it from.
``_toolset.py`` collects the tools of a class.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast, overload

import trio

from trio_agent._docstrings import parse_docstring
from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import JsonObject
from trio_agent._output import promised_output
from trio_agent._results import MAX_RESULT_CHARS, image
from trio_agent._schema import BoundArguments, SignatureArguments
from trio_agent._signature import read_signature, underlying_function
from trio_agent._tool_body import Body, is_async
from trio_agent._tool_context import ToolContext, ToolOutcome
from trio_agent._tool_type import Cancellable, ExecutionMode, FunctionParts, Tool, check_callable

__all__ = ["BoundArguments", "Cancellable", "ExecutionMode", "Tool", "ToolContext", "ToolOutcome", "image", "tool"]

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)


@overload
def tool(function: Callable[_P, _R_co], /) -> Tool[_P, _R_co]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    label: str | None = None,
    prepare_arguments: Callable[[JsonObject], JsonObject] | None = None,
    execution_mode: ExecutionMode | None = None,
    timeout: float | None = None,
    limiter: trio.CapacityLimiter | None = None,
    output_schema: JsonObject | None = None,
    cancellable: Cancellable = True,
    terminate: bool = False,
    max_result_chars: int | None = MAX_RESULT_CHARS,
    strict: bool = False,
) -> Callable[[Callable[_P, _R_co]], Tool[_P, _R_co]]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Make a tool of a function, method, callable object or ``functools.partial``.

    The name, the description and the texts about parameters come from the function and its docstring (Google, NumPy or
    Sphinx style) or from ``Annotated[int, "text"]``, the JSON Schema from its annotations. Arguments are checked and
    converted to the annotated types. A parameter annotated with ``ToolContext`` gets the context and is not for the
    model. An ``async def`` runs in Trio, a ``def`` in a worker thread.

    It may return text, ``None``, whatever is JSON, dataclasses, ``msgspec.Struct``, bytes, text and image blocks, or a
    ``ToolResult``. If its result is annotated with a JSON type or a class, that is the output schema.

    Args:
        function: to make a tool of; without it, ``tool`` takes options and is used as ``@tool(timeout=30)``.
        **options: as for ``Tool``, without ``parameters`` and ``execute``. ``name`` and ``description`` win over what
            the function says.

    Raises:
        ToolDefinitionError: the function cannot be a tool; the text names the parameter and says what to do.
    """
    if isinstance(function, str):
        raise ToolDefinitionError(f"the name of a tool is an option; write @tool(name={function!r})")
    local_names = _names_beside(inspect.currentframe())
    if function is not None:
        return _tool_of(function, local_names, **options)
    return functools.partial(_tool_of, local_names=local_names, **options)


def _names_beside(frame: FrameType | None) -> dict[str, Any]:
    # What annotations may mean beside globals: classes defined next to the function, inside another one or a class. But
    # a tool or method named `list` is not what `list[str]` means.
    around = frame.f_back if frame is not None else None
    if around is None or around.f_locals is around.f_globals:
        return {}
    return {name: value for name, value in around.f_locals.items() if not isinstance(value, Tool | FunctionType)}


def _tool_of(
    function: Any,  # noqa: ANN401
    local_names: Mapping[str, Any],
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool:
    wrapped = isinstance(function, classmethod | staticmethod)
    method = cast("Any", function) if isinstance(function, classmethod) or _is_in_class(function) else None
    called: Callable[..., Any] = cast("Any", function).__func__ if wrapped else function
    check_callable(called, name)
    plain = underlying_function(called)
    is_object = plain.__name__ == "__call__"
    own_name = _snake_case(type(called).__name__) if is_object else plain.__name__
    docstring = parse_docstring(plain.__doc__ or (type(called).__doc__ if is_object else None))
    signature = read_signature(
        called,
        tool_name=name or own_name,
        docstring=docstring,
        context_type=ToolContext,
        is_method=method is not None,
        local_names=local_names,
    )
    parts = FunctionParts(
        Body(
            called,
            in_thread=not is_async(called),
            has_signature=True,
            context_parameter=signature.context_parameter,
            method=method,
        ),
        SignatureArguments(signature.parameters),
        promised_output(signature.returns),
    )
    description = docstring.description if description is None else description
    return Tool(
        name=own_name if name is None else name, description=description, parameters={}, execute=parts, **options
    )


def _is_in_class(function: object) -> bool:
    # Defined in the body of a class, so that its first parameter is the object.
    if not inspect.isfunction(function):
        return False
    around = function.__qualname__.rpartition(".")[0]
    return bool(around) and not around.endswith("<locals>")


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
