"""The scripted clerk, asked directly: what it says depends on the messages it is shown and on nothing else."""

import msgspec
import pytest

from trio_agent import (
    AgentMessage,
    Context,
    Model,
    StreamOptions,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from trio_agent._demo._catalogue import Stock
from trio_agent._demo._scripted import clerk, instructions
from trio_agent.testing import Answer, ScriptedRequest

PRODUCTS = [
    {"id": "T1", "name": "Small tent", "category": "Tents", "price": 100.5},
    {"id": "T2", "name": "Big tent", "category": "Tents", "price": 200},
    {"id": "B1", "name": "Boot", "category": "Footwear", "price": 80},
]
CATALOGUE = msgspec.json.format(msgspec.json.encode({"shop": "Shop", "currency": "EUR", "products": PRODUCTS})).decode()


def ask(*results: ToolResultMessage, question: str = "What is in stock?") -> Answer:
    messages: list[AgentMessage] = [SystemMessage.from_text(instructions('my "shop".json')), question_of(question)]
    context = Context(messages=[*messages, *results])
    return clerk(ScriptedRequest(Model(id="m", api="a", provider="p"), context, StreamOptions()))


def question_of(text: str) -> UserMessage:
    return UserMessage.from_text(text)


def result(tool: str, text: str, *, is_error: bool = False) -> ToolResultMessage:
    content = (TextContent(text=text),)
    return ToolResultMessage(tool_call_id="c", tool_name=tool, content=content, is_error=is_error, timestamp=0)


def check(product_id: str, available: int, delivery: str | None = None) -> ToolResultMessage:
    coming = None if delivery is None else {"quantity": 7, "expected": delivery}
    stock = msgspec.convert(
        {"product_id": product_id, "available": available, "on_hand": 9, "reserved": 0, "next_delivery": coming}, Stock
    )
    return result("stock_check", msgspec.json.encode(stock).decode())


def arguments(answer: Answer) -> list[dict[str, object]]:
    return [call.arguments for call in answer.calls]


def test_the_file_that_the_instructions_name_is_read_first() -> None:
    assert [*ask().calls] == [ToolCall(id="read-1", name="read", arguments={"path": 'my "shop".json'})]


def test_reading_goes_on_where_the_note_says_as_long_as_there_is_one() -> None:
    first = result("read", "{\n\n[Showing lines 1-700 of 1800. Use offset=701 to continue.]")
    second = result("read", "...\n\n[Showing lines 701-900 of 1800 (50.0KB limit). Use offset=901 to continue.]")

    assert arguments(ask(first)) == [{"path": 'my "shop".json', "offset": 701}]
    assert arguments(ask(first, second)) == [{"path": 'my "shop".json', "offset": 901}]


def test_every_product_that_was_read_is_checked_at_once() -> None:
    head, tail = CATALOGUE[:120].rsplit("\n", 1)
    first = result("read", head + "\n\n[9 more lines in file. Use offset=4 to continue.]")

    assert arguments(ask(first, result("read", tail + CATALOGUE[120:]))) == [
        {"product_id": "T1"},
        {"product_id": "T2"},
        {"product_id": "B1"},
    ]


@pytest.mark.parametrize("question", ["Have you any TENTS?", "a tent, please"])
def test_a_question_about_a_category_is_about_its_products_only(question: str) -> None:
    assert arguments(ask(result("read", CATALOGUE), question=question)) == [{"product_id": "T1"}, {"product_id": "T2"}]


def test_the_answer_is_computed_from_the_results() -> None:
    answer = ask(result("read", CATALOGUE), check("T1", 2), check("T2", 0, "2026-01-02"), check("B1", 5))

    assert answer.calls == ()
    assert answer.text == (
        "Shop: 2 of 3 products are in stock, 7 pieces worth EUR 601.00.\n\n"
        "  Tents              1 of   2       2 pieces\n"
        "  Footwear           1 of   1       5 pieces\n"
        "\nLast pieces:\n    2 x Small tent\n    5 x Boot\n"
        "\nOut of stock: 1, of which 1 on their way:\n  2026-01-02    7 x Big tent\n"
    )


def test_checks_that_failed_are_not_counted_as_stock() -> None:
    failed = result("stock_check", "Operation aborted", is_error=True)

    assert ask(result("read", CATALOGUE), check("T1", 2), failed).text.endswith("\nFailed checks: 1\n")


def test_what_cannot_be_read_is_said() -> None:
    missing = ask(result("read", "File not found: x", is_error=True))
    nonsense = ask(result("read", "[Line 1 is 58.6KB, exceeds 50.0KB limit.]"))

    assert missing == Answer(text="I could not read the catalogue: File not found: x\n")
    assert nonsense.calls == ()
    assert "[Line 1 is 58.6KB" in nonsense.text


def test_an_earlier_question_does_not_count() -> None:
    context = Context(
        messages=[
            SystemMessage.from_text(instructions("shop.json")),
            question_of("What is in stock?"),
            result("read", CATALOGUE),
            question_of("And now?"),
        ]
    )
    answer = clerk(ScriptedRequest(Model(id="m", api="a", provider="p"), context, StreamOptions()))

    assert arguments(answer) == [{"path": "shop.json"}]
