from __future__ import annotations

import base64
import datetime as dt
import enum
import pathlib
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from trio_agent._agent_events import ToolResult
from trio_agent._messages import ImageContent, TextContent, Usage
from trio_agent._results import MAX_RESULT_CHARS, ResultRules
from trio_agent._tools import Tool, ToolContext, image, tool

PNG = b"\x89PNG\r\n\x1a\n\0\0"


@dataclass
class Weather:
    city: str
    degrees: float
    path: pathlib.Path | None = None


class Name(str):
    __slots__ = ()


class Word(enum.StrEnum):
    YES = "yes"


def result_of(value: Any, **options: Any) -> ToolResult:
    return ResultRules("t", **options).result(value)


def text_of(result: ToolResult) -> str:
    assert isinstance(result.content, tuple)
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("plain", "plain", UNSET),
        ("", "", UNSET),
        ("grüße 🌍", "grüße 🌍", UNSET),
        (Name("bob"), "bob", UNSET),
        (Word.YES, "yes", UNSET),
        (None, "(no output)", UNSET),
        (b"bytes \xff", "bytes �", UNSET),
        (TextContent(text="block"), "block", UNSET),
        (3, "3", 3),
        (1.5, "1.5", 1.5),
        (True, "true", True),
        ([], "[]", []),
        ({"a": [1, None]}, '{"a":[1,null]}', {"a": [1, None]}),
        ({1: "a"}, '{"1":"a"}', {"1": "a"}),
        ((1, 2), "[1,2]", [1, 2]),
        ({"x"}, '["x"]', ["x"]),
        (2**70, str(2**70), 2**70),
        (dt.date(2026, 11, 29), '"2026-11-29"', "2026-11-29"),
        (pathlib.PurePosixPath("a/b"), '"a/b"', "a/b"),
        (
            Weather("Oslo", 3.5, pathlib.PurePosixPath("x")),  # type: ignore[arg-type]
            '{"city":"Oslo","degrees":3.5,"path":"x"}',
            {"city": "Oslo", "degrees": 3.5, "path": "x"},
        ),
        (Usage.zero().cost, '{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}', None),
    ],
    ids=repr,
)
def test_what_a_tool_may_return(value: Any, text: str, structured: Any) -> None:
    result = result_of(value)

    if text.startswith('"'):
        text = msgspec.json.decode(text)
    assert text_of(result) == text
    assert type(text_of(result)) is str
    assert result.structured_content == (structured if structured is not None else result.structured_content)
    assert result.details == {}
    assert not result.is_error
    assert not result.terminate
    msgspec.json.encode(result)


def test_blocks_and_texts_may_be_mixed() -> None:
    picture = image(PNG)

    assert result_of(["before", picture, TextContent(text="after")]).content == (
        TextContent(text="before"),
        picture,
        TextContent(text="after"),
    )
    assert result_of(picture).content == (picture,)
    assert result_of([PNG, "and text", b"more"]).content == (
        picture,
        TextContent(text="and text"),
        TextContent(text="more"),
    )


def test_images_are_known_by_their_first_bytes() -> None:
    assert image(PNG) == ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")
    assert image(b"\xff\xd8\xff\xe0").mime_type == "image/jpeg"
    assert image(b"GIF89a...").mime_type == "image/gif"
    assert image(b"RIFF\0\0\0\0WEBPVP8 ").mime_type == "image/webp"
    assert image(b"BM..", "image/bmp").mime_type == "image/bmp"
    assert result_of(PNG).content == (image(PNG),)
    with pytest.raises(ValueError, match="say what it is"):
        image(b"BM..")


def test_a_tool_result_is_completed_and_kept() -> None:
    usage = Usage.zero()
    given = ToolResult("text", details=Weather("Oslo", 1), structured_content={"a": 1}, terminate=True, usage=usage)

    result = result_of(given)

    assert result.content == (TextContent(text="text"),)
    assert result.details == {"city": "Oslo", "degrees": 1, "path": None}
    assert (result.structured_content, result.terminate, result.usage) == ({"a": 1}, True, usage)
    assert result_of(ToolResult()).content == ()
    assert result_of(ToolResult([TextContent(text="a")])).content == (TextContent(text="a"),)  # type: ignore[arg-type]
    assert result_of(ToolResult("x", details=None)).details is None
    assert result_of(ToolResult("x", is_error=True)).is_error


def test_a_terminating_tool_terminates_with_what_went_well() -> None:
    assert result_of("x", terminate=True).terminate
    assert result_of({"a": 1}, terminate=True).terminate
    assert result_of(ToolResult("x"), terminate=True).terminate
    assert not result_of(ToolResult("x", is_error=True), terminate=True).terminate


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "returned a value that is no JSON (there is no JSON for a object)"),
        ({"a": object()}, "return text, JSON values, dataclasses, msgspec.Struct"),
        (ToolResult("x", structured_content=object()), "returned structured_content with a value that is no JSON"),
        ([TextContent(text="x"), {"a": 1}], "returned a dict among content blocks"),
        (ToolResult(({"a": 1},)), "returned a dict among content blocks"),  # type: ignore[arg-type]
    ],
    ids=["object", "nested", "structured", "mixed", "content"],
)
def test_what_a_tool_may_not_return_is_named(value: Any, words: str) -> None:
    with pytest.raises(TypeError, match="tool 't' returned") as raised:
        result_of(value)

    assert words in str(raised.value)


def test_details_that_are_no_json_are_left_out_and_the_result_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    result = result_of(ToolResult("found", details=object()))

    assert (text_of(result), result.details) == ("found", {})
    assert "tool 't' returned details with a value that is no JSON" in caplog.text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\ud83db", "a�b"),
        ("\udc00", "�"),
        ("\ud83e\udd14", "🤔"),
        ("🤔\ud83d", "🤔�"),
    ],
)
def test_lone_surrogates_never_leave(text: str, clean: str) -> None:
    assert text_of(result_of(text)) == clean
    assert text_of(result_of(ToolResult(text))) == clean
    assert result_of({"k": [text]}).structured_content == {"k": [clean]}
    assert result_of(ToolResult("x", details={text: text})).details == {clean: clean}
    msgspec.json.encode(result_of([TextContent(text=text)]))


def test_long_results_are_cut_after_a_line_with_a_notice() -> None:
    lines = "".join(f"line {n}\n" for n in range(10_000))

    text = text_of(result_of(lines))

    kept, _, notice = text.partition("\n\n[")
    assert len(kept) <= MAX_RESULT_CHARS
    assert lines.startswith(kept + "\n")
    assert notice == f"Output truncated: the first {len(kept)} of {len(lines)} characters are shown]"


def test_the_bound_is_for_all_texts_of_a_result_together() -> None:
    blocks = result_of(["x" * 6, "y" * 6, image(PNG), "z"], max_chars=10).content

    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    assert texts == [
        "xxxxxx",
        "yyyy\n\n[Output truncated: the first 4 of 6 characters are shown]",
        "\n\n[Output truncated: the first 0 of 1 characters are shown]",
    ]
    assert text_of(result_of("x" * 100_000, max_chars=None)) == "x" * 100_000
    assert text_of(result_of("x" * 10, max_chars=10)) == "x" * 10


# -- what a tool promises ----------------------------------------------------------------------------------------------


async def returned(made: Tool, arguments: dict[str, Any] | None = None) -> ToolResult:
    return await made.invoke(made.bind(arguments or {}), None)


async def test_a_class_in_the_annotation_is_the_output_schema() -> None:
    @tool
    async def weather(city: str) -> Weather:
        return Weather(city, 3.5)

    result = await returned(weather, {"city": "Oslo"})

    assert weather.output_schema is not None
    assert list(weather.output_schema["properties"]) == ["city", "degrees", "path"]
    assert result.structured_content == {"city": "Oslo", "degrees": 3.5, "path": None}
    assert text_of(result) == '{"city":"Oslo","degrees":3.5,"path":null}'


async def test_a_result_that_breaks_its_promise_is_an_error_that_names_the_place() -> None:
    @tool
    async def weather() -> list[Weather]:
        return [Weather("Oslo", "cold")]  # type: ignore[arg-type]

    @tool
    async def count() -> int:
        return "many"  # type: ignore[return-value]

    @tool
    async def nothing() -> dict[str, int]:
        return None  # type: ignore[return-value]

    result = await returned(weather)
    assert result.is_error
    assert text_of(result) == (
        'Tool "weather" returned a result that does not fit its output schema:\n'
        "  - 0.degrees: expected number, got string"
    )
    assert "root: expected integer, got string" in text_of(await returned(count))
    assert "root: expected object, got null" in text_of(await returned(nothing))


@pytest.mark.parametrize(
    "annotation",
    [str, None, Any, object, ToolResult, TextContent, str | None, str | Weather, list[TextContent | ImageContent]],
    ids=str,
)
async def test_text_and_blocks_promise_nothing(annotation: Any) -> None:
    async def function() -> Any:
        return {"anything": 1}

    function.__annotations__["return"] = annotation

    made = tool(function)

    assert made.output_schema is None
    assert (await returned(made)).structured_content == {"anything": 1}


async def test_a_given_output_schema_is_checked() -> None:
    answers: list[Any] = [{"n": 1}, {"n": "x"}, ToolResult("x", structured_content={"n": 1.5}), ToolResult("as text")]
    answers.append(ToolResult("it failed", structured_content={"why": 1}, is_error=True))

    async def execute(arguments: dict[str, Any], ctx: ToolContext) -> Any:
        return answers.pop(0)

    made = Tool(
        name="t",
        parameters={},
        execute=execute,
        output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    )

    results = [await returned(made) for _ in range(5)]

    assert [result.is_error for result in results] == [False, True, True, False, True]
    assert "n: expected integer, got string" in text_of(results[1])
    assert "n: expected integer, got number" in text_of(results[2])
    assert text_of(results[4]) == "it failed"


def test_the_text_of_a_broken_promise_is_bounded_too() -> None:
    @tool(max_result_chars=40)
    async def f() -> dict[str, int]: ...  # type: ignore[empty-body]

    result = f._rules.result({f"key{n}": "x" for n in range(30)})

    assert result.is_error
    assert len(text_of(result)) < 200
