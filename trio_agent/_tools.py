"""Tools: what a model may call, made from a function or from a JSON Schema.

``Tool`` holds the callable and what the loop must know to run it; ``ToolContext`` is what its body sees of the run.
Checking of arguments is below, in ``_schema.py``; hooks, limits, time limits and events are above, in the loop.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final, overload

import msgspec
import trio

from trio_agent._agent_events import ToolResult
from trio_agent._errors import ToolDefinitionError
from trio_agent._messages import ImageContent, JsonObject, JsonValue, TextContent, ToolDeclaration
from trio_agent._schema import Arguments, BoundArguments, SchemaArguments, SignatureArguments
from trio_agent._signature import read_signature

if TYPE_CHECKING:
    from trio_agent._transcript import Context

__all__ = ["BoundArguments", "ExecutionMode", "Tool", "ToolContext", "ToolOutcome", "tool"]

ExecutionMode: TypeAlias = Literal["parallel", "sequential", "exclusive"]
Cancellable: TypeAlias = Literal[True, False, "cooperative"]
UpdateCallback: TypeAlias = "Callable[[ToolResult], Awaitable[None] | None]"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THREADS = 40
_thread_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("trio_agent tool threads")


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What became of a nested call.

    Attributes:
        result: the result, after the hooks.
        is_error: the call failed.
        duration_ms: how long the tool ran, in milliseconds; ``None`` when it did not run.
    """

    result: ToolResult
    is_error: bool
    duration_ms: float | None


@final
class ToolContext:
    """What the body of a tool sees of the run that called it. Made by the loop.

    Attributes:
        tool_call_id: of the call.
        tool_name: as the model wrote it.
        agent_context: the messages and tools of the run, read-only.
    """

    __slots__ = ("_call_tool", "_update", "agent_context", "thread_limiter", "tool_call_id", "tool_name")

    def __init__(
        self,
        *,
        tool_call_id: str,
        tool_name: str,
        agent_context: Context,
        update: Callable[[ToolResult], Awaitable[None]],
        call_tool: Callable[[str, JsonObject, str | None, UpdateCallback | None], Awaitable[ToolOutcome]],
        thread_limiter: trio.CapacityLimiter | None = None,
    ) -> None:
        self.tool_call_id = tool_call_id
        self.tool_name = tool_name
        self.agent_context = agent_context
        self.thread_limiter = thread_limiter
        self._update = update
        self._call_tool = call_tool

    async def update(self, partial: ToolResult | str, /) -> None:
        """Report progress, and wait until all listeners have handled it."""
        await self._update(_normal(partial) if isinstance(partial, ToolResult) else _text_result(partial))

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        call_id: str | None = None,
        on_update: UpdateCallback | None = None,
    ) -> ToolOutcome:
        """Call another tool of the run, through the same hooks and limits, without events or messages.

        Args:
            name: of the tool.
            arguments: for it.
            call_id: of the nested call; one is made up if not given.
            on_update: is given what the nested call reports.
        """
        return await self._call_tool(name, {} if arguments is None else arguments, call_id, on_update)

    @property
    def deadline(self) -> float:
        """When the call will be cancelled on Trio's clock: the nearest deadline of the tool, the run and the caller."""
        return trio.current_effective_deadline()


Execute: TypeAlias = Callable[[JsonObject, ToolContext], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Function:
    # Takes the place of `execute` when a tool is made from a function.
    function: Callable[..., Any]
    arguments: SignatureArguments
    context_parameter: str | None
    in_thread: bool

    async def __call__(self, arguments: JsonObject, ctx: ToolContext, /) -> JsonValue:
        return await self.function(**arguments)


@final
class Tool:
    """A tool that a model may call."""

    __slots__ = (
        "_arguments",
        "_context_parameter",
        "_declaration",
        "_function",
        "_in_thread",
        "cancellable",
        "description",
        "execution_mode",
        "label",
        "limiter",
        "name",
        "needs_context",
        "output_schema",
        "prepare_arguments",
        "terminate",
        "timeout",
    )

    name: str
    description: str
    label: str | None
    prepare_arguments: Callable[[JsonObject], JsonObject] | None
    execution_mode: ExecutionMode | None
    timeout: float | None
    limiter: trio.CapacityLimiter | None
    output_schema: JsonObject | None
    cancellable: Cancellable
    terminate: bool
    needs_context: bool

    def __init__(
        self,
        *,
        name: str,
        description: str = "",
        parameters: JsonObject,
        execute: Execute,
        label: str | None = None,
        prepare_arguments: Callable[[JsonObject], JsonObject] | None = None,
        execution_mode: ExecutionMode | None = None,
        timeout: float | None = None,
        limiter: trio.CapacityLimiter | None = None,
        output_schema: JsonObject | None = None,
        cancellable: Cancellable = True,
        terminate: bool = False,
    ) -> None:
        if _NAME.fullmatch(name) is None:
            raise ToolDefinitionError(f"{name!r} is no name for a tool; use 1 to 64 of a-z, A-Z, 0-9, '_' and '-'")
        if timeout is not None and not timeout > 0:
            raise ToolDefinitionError(f"tool {name!r}: timeout must be more than 0 seconds, not {timeout!r}")
        self.name = name
        self.description = description
        self.label = label
        self.prepare_arguments = prepare_arguments
        self.execution_mode = execution_mode
        self.timeout = timeout
        self.limiter = limiter
        self.output_schema = output_schema
        self.cancellable = cancellable
        self.terminate = terminate
        self.needs_context = True
        self._declaration: ToolDeclaration | None = None
        self._function: Callable[..., Any] = execute
        if isinstance(execute, _Function):
            self._function = execute.function
            self._arguments: Arguments = execute.arguments
            self._context_parameter: str | None = execute.context_parameter
            self._in_thread = execute.in_thread
            self.needs_context = execute.in_thread or execute.context_parameter is not None
        else:
            self._arguments = SchemaArguments(name, parameters)
            self._context_parameter = None
            self._in_thread = False

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments."""
        return self._arguments.schema

    @property
    def declaration(self) -> ToolDeclaration:
        """What the model is told; the same object each time."""
        if self._declaration is None:
            self._declaration = ToolDeclaration(
                name=self.name, description=self.description, parameters=self.parameters
            )
        return self._declaration

    def bind(self, arguments: JsonObject) -> BoundArguments:
        """Check the arguments of a call and bring them into the form the body takes. Never modifies them.

        Raises:
            ToolArgumentsError: they do not fit; its text is for the model.
        """
        return self._arguments.bind(self.name, arguments)

    async def invoke(self, bound: BoundArguments, ctx: ToolContext | None) -> ToolResult:
        """Run the body. What it raises comes out unchanged.

        Args:
            bound: from ``bind``.
            ctx: may be ``None`` if the tool does not need it.
        """
        value = bound.value
        if type(value) is dict:
            result = await self._function(value, ctx)
        else:
            keywords = msgspec.structs.asdict(value)
            if self._context_parameter is not None:
                keywords[self._context_parameter] = ctx
            if self._in_thread:
                result = await trio.to_thread.run_sync(
                    functools.partial(self._function, **keywords),
                    abandon_on_cancel=self.cancellable is True,
                    limiter=_limiter(ctx),
                )
            else:
                result = await self._function(**keywords)
        return _convert(result, terminate=self.terminate)

    def __call__(self, *args: Any, **kwargs: Any) -> JsonValue:
        """Call the function that the tool was made from."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool(name={self.name!r})"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
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
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: its name, its docstring and its annotations are what the model is told."""
    if function is None:
        return functools.partial(_from_function, name=name, description=description, **options)
    return _from_function(function, name=name, description=description, **options)


def _from_function(function: Callable[..., Any], *, name: str | None, description: str | None, **options: Any) -> Tool:
    name = name or function.__name__
    signature = read_signature(function, label=name, context_type=ToolContext)
    return Tool(
        name=name,
        description=inspect.getdoc(function) or "" if description is None else description,
        parameters={},
        execute=_Function(
            function,
            SignatureArguments(signature),
            signature.context_parameter,
            in_thread=not inspect.iscoroutinefunction(function),
        ),
        **options,
    )


def _limiter(ctx: ToolContext | None) -> trio.CapacityLimiter:
    if ctx is not None and ctx.thread_limiter is not None:
        return ctx.thread_limiter
    try:
        return _thread_limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(_THREADS)
        _thread_limiter.set(limiter)
        return limiter


def _convert(value: object, *, terminate: bool) -> ToolResult:
    if isinstance(value, str):
        return _text_result(value, terminate=terminate)
    if value is None:
        return _text_result("(no output)", terminate=terminate)
    if isinstance(value, ToolResult):
        return _normal(value)
    if isinstance(value, TextContent | ImageContent):
        return ToolResult(content=(value,), details={}, terminate=terminate)
    structured: JsonValue = msgspec.to_builtins(value)
    text = msgspec.json.encode(value).decode()
    return ToolResult(content=(TextContent(text=text),), details={}, structured_content=structured, terminate=terminate)


def _text_result(text: str, *, terminate: bool = False) -> ToolResult:
    return ToolResult(content=(TextContent(text=text),), details={}, terminate=terminate)


def _normal(result: ToolResult) -> ToolResult:
    content = result.content
    return msgspec.structs.replace(
        result,
        content=(TextContent(text=content),) if isinstance(content, str) else content,
        details={} if result.details is msgspec.UNSET else result.details,
    )
