from __future__ import annotations

from collections.abc import Sequence

from trio_agent._messages import AssistantMessage, Message, StopReason, TextContent, ToolResultMessage
from trio_agent._models import Model
from trio_agent.wire._history import conversation
from trio_agent.wire._ids import CallIdRule

from .transcripts import PNG, answer, call, result, system, thought, user

OURS = Model(id="ours", api="anthropic-messages", provider="anthropic", input=("text", "image"))
OTHER = Model(id="other", api="openai-completions", provider="groq")
FREE = CallIdRule()


def repaired(*messages: Message, model: Model = OURS, rule: CallIdRule = FREE) -> Sequence[Message]:
    return conversation(messages, model, rule)


def results(*messages: Message) -> list[tuple[str, str, bool]]:
    found = [message for message in repaired(*messages) if isinstance(message, ToolResultMessage)]
    return [(message.tool_call_id, message.text, message.is_error) for message in found]


def test_valid_conversation_is_unchanged() -> None:
    messages: list[Message] = [
        user("go"),
        answer(OURS, thought("hm", "SIG"), "ok", call("a")),
        result("a", "A"),
        user("next"),
    ]

    assert repaired(*messages) == messages


def test_system_messages_are_no_part_of_the_conversation() -> None:
    assert repaired(system(), user("a"), system("more"), user("b")) == [user("a"), user("b")]


def test_call_without_a_result_gets_an_error_result_at_once() -> None:
    messages: list[Message] = [user("go"), answer(OURS, call("a"), call("b")), result("a", "A"), user("stop")]

    got = repaired(*messages)

    assert results(*messages) == [("a", "A", False), ("b", "No result provided", True)]
    assert isinstance(got[3], ToolResultMessage)
    assert got[4] == user("stop")


def test_call_at_the_very_end_gets_a_result_too() -> None:
    assert results(answer(OURS, call("a"))) == [("a", "No result provided", True)]


def test_results_stand_in_source_order_behind_their_calls() -> None:
    messages: list[Message] = [
        answer(OURS, call("a"), call("b")),
        user("meanwhile"),
        result("b", "B"),
        result("a", "A"),
    ]

    assert results(*messages) == [("a", "A", False), ("b", "B", False)]
    assert repaired(*messages)[-1] == user("meanwhile")


def test_results_without_a_call_and_second_results_are_left_out() -> None:
    messages: list[Message] = [
        result("x", "X"),
        answer(OURS, call("a")),
        result("a", "1"),
        result("a", "2"),
        result("y", "Y"),
    ]

    assert results(*messages) == [("a", "1", False)]


def test_id_used_again_in_a_later_turn_pairs_with_the_latest_call() -> None:
    messages: list[Message] = [
        answer(OURS, call("f:0")),
        result("f:0", "one"),
        answer(OURS, call("f:0")),
        user("interrupted"),
        answer(OURS, call("f:0")),
        result("f:0", "three"),
    ]

    assert [text for _, text, _ in results(*messages)] == ["one", "No result provided", "three"]
    assert len({call_id for call_id, _, _ in results(*messages)}) == 3


def test_one_id_for_two_calls_of_an_answer_pairs_in_order() -> None:
    messages: list[Message] = [answer(OURS, call("x"), call("x")), result("x", "1"), result("x", "2")]

    (first, one, _), (second, two, _) = results(*messages)

    assert (one, two) == ("1", "2")
    assert first != second


def test_failed_aborted_and_unfinished_answers_go_with_their_results() -> None:
    messages: list[Message] = [user("go")]
    reasons: tuple[StopReason, ...] = ("error", "aborted", "pending")
    for reason in reasons:
        messages += [answer(OURS, "half", call("a"), stop_reason=reason), result("a", "A")]

    assert repaired(*messages) == [user("go")]


def test_cut_answers_stay_with_their_results() -> None:
    messages: list[Message] = [answer(OURS, call("a"), stop_reason="length"), result("a", "cut", is_error=True)]

    assert repaired(*messages) == messages


def test_reasoning_of_the_same_model_is_kept_if_it_says_anything() -> None:
    kept = [thought("hm"), thought("", "SIG"), thought("", "", redacted=True)]

    [message] = repaired(answer(OURS, thought("  "), *kept, thought(""), "ok"))

    assert message.content == (*kept, TextContent(text="ok"))


def test_of_another_model_reasoning_and_signatures_are_left_out() -> None:
    signed_call = call("a")
    foreign = answer(
        OTHER,
        thought("hm", "SIG"),
        TextContent(text="ok", text_signature="t"),
        type(signed_call)(id="a", name="read", arguments={}, thought_signature="s"),
    )

    [message, _] = repaired(foreign)

    assert message.content == (TextContent(text="ok"), signed_call)


def test_same_name_at_another_provider_is_another_model() -> None:
    twin = Model(id=OURS.id, api=OURS.api, provider="other")

    [message] = repaired(answer(twin, thought("hm", "SIG"), "ok"))

    assert message.content == (TextContent(text="ok"),)


def test_images_become_one_line_for_a_model_without_eyes() -> None:
    blind = Model(id="blind", api=OURS.api, provider="p")
    messages: list[Message] = [user("see", PNG, PNG, "and", PNG), answer(blind, call("a")), result("a", PNG, PNG)]
    line = TextContent(text="(image omitted: model does not support images)")

    asked, _, got = repaired(*messages, model=blind)

    assert asked.content == (TextContent(text="see"), line, TextContent(text="and"), line)
    assert got.content == (TextContent(text="(tool image omitted: model does not support images)"),)
    assert repaired(*messages, model=OURS)[0] is messages[0]


def test_ids_are_made_to_fit_in_calls_and_results_alike() -> None:
    rule = CallIdRule(max_length=20, plain=True)
    messages: list[Message] = [
        answer(OTHER, call("a b/c"), call("x" * 30)),
        result("a b/c", "1"),
        result("x" * 30, "2"),
    ]

    message, first, second = repaired(*messages, rule=rule)

    assert isinstance(message, AssistantMessage)
    ids = [block.id for block in message.tool_calls]
    assert [item.tool_call_id for item in (first, second) if isinstance(item, ToolResultMessage)] == ids
    assert ids[0] == "a_b_c"
    assert len(ids[1]) == 20
    assert messages[0] == answer(OTHER, call("a b/c"), call("x" * 30))
