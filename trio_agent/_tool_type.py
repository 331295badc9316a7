"""``Tool``: the callable that a model may call, and what the loop must know to run it.

Its arguments are checked by ``_schema.py``, its body is run by ``_tool_body.py`` and its result is made by
``_results.py``, all below; hooks, slots, time limits and events belong to the loop, above. ``_tools.py`` makes tools of
functions.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, cast, final

import msgspec
import trio

from trio_agent._agent_events import ToolResult
from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import JsonObject, ToolDeclaration
from trio_agent._output import Output, SchemaOutput
from trio_agent._results import MAX_RESULT_CHARS, ResultRules
from trio_agent._schema import Arguments, Binder, BoundArguments, SchemaArguments
from trio_agent._signature import underlying_function
from trio_agent._strict import strict_schema
from trio_agent._tool_body import Body, is_async
from trio_agent._tool_context import ToolContext

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    _P = ParamSpec("_P", default=...)
    _R_co = TypeVar("_R_co", default=Any, covariant=True)
else:
    from typing import ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _R_co = TypeVar("_R_co", covariant=True)

__all__ = ["Cancellable", "ExecutionMode", "FunctionParts", "Tool", "check_callable"]

ExecutionMode: TypeAlias = Literal["parallel", "sequential", "exclusive"]
Cancellable: TypeAlias = Literal[True, False, "cooperative"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FunctionParts(msgspec.Struct, frozen=True):
    """What stands in for ``execute`` and ``parameters`` when a tool is made of a function; for the library."""

    body: Body
    arguments: Arguments
    output: Output | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # has the type of what it stands in for
        """Call the function."""
        return self.body.function(*args, **kwargs)


@final
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Tool(Generic[_P, _R_co]):
    """A tool that a model may call.

    The constructor makes one from a JSON Schema; ``tool`` makes one of a function, and that one can be called like the
    function. A tool does not change and belongs to no run: any number of agents may share one.

    Args:
        name: by which the model calls it: 1 to 64 letters, digits, ``_`` and ``-``.
        description: for the model.
        parameters: JSON Schema of the arguments, an object schema. It is checked at once; its validator is made once.
        execute: ``async def execute(arguments, ctx)``; a plain ``def`` runs in a worker thread. It may return what a
            function may, see ``tool``. The arguments are its own copy.
        label: for people.
        prepare_arguments: changes the arguments before they are checked, such as names of an older version.
        execution_mode: ``sequential`` makes its whole batch of calls sequential, ``exclusive`` only runs alone.
        timeout: seconds that the body may take, counted from when it gets its slot. Wins over the agent's.
        limiter: bounds how many calls run at once; may be shared by tools and agents.
        output_schema: JSON Schema of the structured result, which is then checked.
        cancellable: of a body in a worker thread. ``True``: on cancellation it is abandoned and its result discarded.
            ``False``: it is waited for. ``"cooperative"``: it is waited for and calls
            ``trio.from_thread.check_cancelled`` to learn that it should stop.
        terminate: successful results ask for no further request; it is skipped if all results of the batch say so.
        max_result_chars: longest text of a result, the rest is cut off with a notice; ``None`` for no bound.
        strict: declare the parameters in the form that providers want for strict decoding, and ask for it where
            the model's ``compat`` says that it can.

    Raises:
        ToolDefinitionError: these do not make a tool; the text says what to do.

    Attributes:
        needs_context: whether ``invoke`` must be given a context.
        bind: checks the arguments of a call and brings them into the form that the body takes, without modifying them;
            raises ``ToolArgumentsError``, whose text is for the model, if they do not fit. A function and no method,
            because it is called for every call and a method costs a third of it.
    """

    name: str
    description: str
    label: str | None
    prepare_arguments: Callable[[JsonObject], JsonObject] | None
    execution_mode: ExecutionMode | None
    timeout: float | None
    limiter: trio.CapacityLimiter | None
    cancellable: Cancellable
    strict: bool
    needs_context: bool
    bind: Binder
    _arguments: Arguments
    _body: Body
    _rules: ResultRules
    _declaration: ToolDeclaration | None

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        parameters: JsonObject,
        execute: Callable[_P, _R_co],
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
    ) -> None:
        _check_name(name)
        if isinstance(execute, FunctionParts):
            parts = execute
        else:
            check_callable(execute, name)
            parts = FunctionParts(Body(execute, not is_async(execute)), SchemaArguments(name, parameters), None)
        body = parts.body
        _check_options(name, body, timeout, limiter, execution_mode, cancellable, max_result_chars)
        output = parts.output if output_schema is None else SchemaOutput(name, output_schema)
        self._set(
            name=name,
            description=description,
            label=label,
            prepare_arguments=prepare_arguments,
            execution_mode=execution_mode,
            timeout=timeout,
            limiter=limiter,
            cancellable=cancellable,
            strict=strict,
            needs_context=body.needs_context,
            bind=parts.arguments.binder(name),
            _arguments=parts.arguments,
            _body=body,
            _rules=ResultRules(name, output, max_result_chars, terminate),
            _declaration=None,
        )

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments."""
        return self._arguments.schema

    @property
    def output_schema(self) -> JsonObject | None:
        """JSON Schema of the structured result, as given or from the annotation of the function's result."""
        return None if self._rules.output is None else self._rules.output.schema

    @property
    def terminate(self) -> bool:
        """Successful results ask for no further request."""
        return self._rules.terminate

    @property
    def max_result_chars(self) -> int | None:
        """Longest text of a result."""
        return self._rules.max_chars

    @property
    def in_thread(self) -> bool:
        """The body runs in a worker thread."""
        return self._body.in_thread

    @property
    def is_unbound(self) -> bool:
        """It is a method that lacks its object, so that it cannot run."""
        return self._body.method is not None

    @property
    def origin(self) -> str:
        """Where the body was defined, for errors."""
        plain = underlying_function(self._body.function)
        return f"{plain.__module__}.{getattr(plain, '__qualname__', self.name)}"

    @property
    def declaration(self) -> ToolDeclaration:
        """What the model is told; the same object each time."""
        declaration = self._declaration
        if declaration is None:
            parameters = strict_schema(self.parameters, self.name) if self.strict else self.parameters
            declaration = ToolDeclaration(
                name=self.name, description=self.description, parameters=parameters, strict=self.strict
            )
            self._set(_declaration=declaration)
        return declaration

    async def invoke(self, bound: BoundArguments, ctx: ToolContext | None) -> ToolResult:
        """Run the body and make its result. What the body raises comes out unchanged.

        Args:
            bound: from ``bind``; for one use, as the body may modify what it is given.
            ctx: may be ``None`` if the tool does not need one.

        Raises:
            TypeError: the body returned what cannot be a result.
        """
        return self._rules.result(await self._body.run(bound.value, ctx, abandon=self.cancellable is True))

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Call the function that the tool was made from, as if it were no tool."""
        return self._body.function(*args, **kwargs)  # type: ignore[no-any-return]

    def __get__(self, instance: object | None, owner: type | None = None) -> Tool[..., _R_co]:
        """The tool of an object, if the tool is a method of its class."""
        method = self._body.method
        if method is None or (instance is None and not isinstance(method, classmethod)):
            return self
        bound = cast("Any", method).__get__(instance, owner)
        return self._copy(_body=msgspec.structs.replace(self._body, function=bound, method=None))

    def renamed(self, name: str) -> Tool[_P, _R_co]:
        """The same tool under another name."""
        _check_name(name)
        rules = msgspec.structs.replace(self._rules, tool_name=name)
        return self._copy(name=name, bind=self._arguments.binder(name), _rules=rules, _declaration=None)

    def wrapped(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Tool[_P, _R_co]:
        """The same tool with a function around its body, such as one that logs or caches.

        Args:
            wrap: takes the function that is called, and gives the one to call in its place.
        """
        function = wrap(self._body.function)
        method = self._body.method
        if method is not None:
            method = classmethod(function) if isinstance(method, classmethod) else function
        body = msgspec.structs.replace(self._body, function=function, method=method, in_thread=not is_async(function))
        return self._copy(_body=body, needs_context=body.needs_context)

    def _copy(self, **changes: object) -> Tool[Any, Any]:
        if self._declaration is None:
            _ = self.declaration  # so that copies share it: whether a declaration is known is seen by its identity
        copy: Tool[Any, Any] = object.__new__(Tool)
        copy._set(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)} | changes)
        return copy

    def __repr__(self) -> str:
        return f"<Tool {self.name!r} from {self.origin}>"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ToolDefinitionError(
            f"{name!r} is no name for a tool; give one of 1 to 64 letters a-z and A-Z, digits, '_' and '-', "
            "such as tool(name='read_file')"
        )


def check_callable(function: object, name: str | None) -> None:
    """Refuse what no tool can be made of.

    Raises:
        ToolDefinitionError: it says what to do.
    """
    what = f"tool {name!r}: " if name else ""
    if isinstance(function, Tool):
        raise ToolDefinitionError(
            f"{function!r} is a tool already; remove one @tool, or use tool.renamed() for a new name"
        )
    if not callable(function):
        raise ToolDefinitionError(f"{what}{function!r} cannot be called; a tool is made of a function")
    if inspect.isclass(function):
        raise ToolDefinitionError(
            f"{what}{function.__name__} is a class; decorate its methods, and make it a Toolset if they share resources"
        )
    plain = underlying_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise ToolDefinitionError(
            f"{what}{plain.__name__} yields, but a tool returns its result; "
            "report progress with `await ctx.update(...)` instead"
        )


def _check_options(
    name: str,
    body: Body,
    timeout: object,
    limiter: object,
    execution_mode: object,
    cancellable: object,
    max_result_chars: object,
) -> None:
    def refuse(reason: str) -> None:
        raise ToolDefinitionError(f"tool {name!r}: {reason}")

    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        refuse(f"timeout must be more than 0 seconds, not {timeout!r}; leave it out for no limit")
    if limiter is not None and not isinstance(limiter, trio.CapacityLimiter):
        refuse(f"limiter must be a trio.CapacityLimiter, not {limiter!r}; write limiter=trio.CapacityLimiter(4)")
    if execution_mode not in (None, "parallel", "sequential", "exclusive"):
        refuse(f"execution_mode must be 'parallel', 'sequential' or 'exclusive', not {execution_mode!r}")
    if cancellable not in (True, False, "cooperative"):
        refuse(f"cancellable must be True, False or 'cooperative', not {cancellable!r}")
    if cancellable is not True and not body.in_thread:
        refuse(
            "cancellable is for `def` functions, which run in threads; "
            "an `async def` is always cancellable, protect a part of it with `trio.CancelScope(shield=True)`"
        )
    if max_result_chars is not None and not (isinstance(max_result_chars, int) and max_result_chars > 0):
        refuse(f"max_result_chars must be more than 0, not {max_result_chars!r}; None is for no bound")
