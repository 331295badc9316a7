"""One answer of the model: the request's hooks, the stream, and the final message, which there always is.

Whatever goes wrong on the model's side ends here, as an answer with the stop reason ``error``: an exception of the
stream function, an illegal event, a stream without an end. What had arrived is kept. Only three things leave: a
cancellation, what the sink raised, and what a hook raised.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec
import trio

from trio_agent._agent_events import AgentEvent, MessageEnd, MessageStart, MessageUpdate
from trio_agent._builder import MessageBuilder
from trio_agent._errors import RemoteProtocolError
from trio_agent._failures import describe
from trio_agent._hooks import RequestDetails
from trio_agent._messages import AgentMessage, AssistantMessage
from trio_agent._models import StreamOptions
from trio_agent._run_core import RunCore, Turn
from trio_agent._stream_events import AssistantMessageEvent, StreamStart
from trio_agent._stream_fn import StreamFn, as_receiver
from trio_agent._transcript import Context, View, default_convert_to_llm

__all__ = ["ask_model", "end_answer", "final_answer"]

logger = logging.getLogger("trio_agent")


async def ask_model(core: RunCore, turn: Turn, stream_fn: StreamFn) -> AssistantMessage:
    """Ask the model for the turn's answer, and stream it.

    Returns:
        The answer, which is in the transcript.
    """
    context, options = await _prepare_request(core)
    turn.asked_at = trio.current_time()
    builder = turn.builder = MessageBuilder(core.model, timestamp=core.now_ms(), thinking_level=core.thinking_level)
    try:
        await _read(core, turn, builder, stream_fn, context, options)
        if core.abort.aborted:
            await core.stop_if_aborted()
        if not builder.finished:
            raise RemoteProtocolError("the stream ended before the answer was complete")
    except Exception as exc:
        if core.sink.failure is not None:
            # It came through the stream function, which may have made something else of it.
            raise core.sink.failure from None
        await core.stop_if_aborted()
        if builder.finished:
            logger.warning("closing a complete answer failed", exc_info=exc)
        else:
            builder.fail("error", describe(exc))
    finally:
        core.cuttable = False
    return await end_answer(core, turn, builder)


async def _prepare_request(core: RunCore) -> tuple[Context, StreamOptions]:
    hooks, transcript = core.config.hooks, core.transcript
    if hooks.prepare_request is not None:
        details = RequestDetails(context=transcript.context, model=core.model, thinking_level=core.thinking_level)
        update = await core.ask(hooks.prepare_request(details))
        if update is not None:
            tools = transcript.tools_in_order
            core.apply(update)
            if transcript.tools_in_order != tools:
                core.pending.extend(transcript.declare([]))
                while core.pending:
                    await core.take_in()
                await core.stop_if_aborted()
    if hooks.transform_context is None and hooks.convert_to_llm is None:
        llm = transcript.for_llm()
    else:
        messages: Sequence[AgentMessage] = transcript.context.messages
        if hooks.transform_context is not None:
            messages = await core.ask(hooks.transform_context(messages))
        convert = hooks.convert_to_llm or default_convert_to_llm
        llm = View(list(convert(messages)))
        await core.stop_if_aborted()
    key = None
    if hooks.get_api_key is not None:
        key = await core.ask(hooks.get_api_key(core.model.provider))
    options = core.config.options
    level = None if core.thinking_level == "off" else core.thinking_level
    if key or level != options.reasoning:
        options = msgspec.structs.replace(options, api_key=key or options.api_key, reasoning=level)
    return Context(llm, transcript.tools_in_order), options


async def _read(
    core: RunCore, turn: Turn, builder: MessageBuilder, stream_fn: StreamFn, context: Context, options: StreamOptions
) -> None:
    abort = core.abort
    core.cuttable = True
    async with stream_fn(core.model, context, options) as events:
        receive_some = as_receiver(events).receive_some
        while received := await receive_some():
            core.cuttable = False
            if abort.aborted:
                await core.stop_if_aborted()
            updates = _updates(core, turn, builder, received)
            if len(received) > 1:
                await core.emit_all(updates)
            else:
                for update in updates:
                    await core.emit(update)
            if builder.finished:
                break
            if abort.aborted:
                await core.stop_if_aborted()
            core.cuttable = True
        core.cuttable = True


def _updates(
    core: RunCore, turn: Turn, builder: MessageBuilder, received: Sequence[AssistantMessageEvent]
) -> Iterator[AgentEvent]:
    abort, add = core.abort, builder.add
    for event in received:
        if abort.aborted:
            return
        event = add(event)  # noqa: PLW2901  # the same event, now with its partial message
        if builder.finished:
            return
        if builder.started:
            if type(event) is not StreamStart:
                yield MessageUpdate(assistant_message_event=event)
            elif not turn.announced:
                turn.announced = True
                yield MessageStart(message=event.partial)


async def end_answer(core: RunCore, turn: Turn, builder: MessageBuilder) -> AssistantMessage:
    """Put the answer into the transcript and close it; one that is not complete ends as aborted."""
    message = final_answer(turn, builder)
    if not turn.announced:
        turn.announced = True
        await core.emit(MessageStart(message=message))
    turn.message = message
    turn.builder = None  # it holds all that was streamed
    core.commit(message)
    await core.emit(MessageEnd(message=message))
    return message


def final_answer(turn: Turn, builder: MessageBuilder) -> AssistantMessage:
    """The message that the answer ends as."""
    message = builder.result() if builder.finished else builder.fail("aborted", "Operation aborted")
    if builder.started and message.duration_ms is None:
        duration = round((trio.current_time() - turn.asked_at) * 1000)
        message = msgspec.structs.replace(message, duration_ms=duration)
    return message
