"""The read tool as the loop calls it: arguments as models send them, real files, results and errors."""

import base64
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from image_samples import BMP, gif, jpeg, png, png_chunk

from trio_agent import (
    Context,
    ImageContent,
    JsonObject,
    TextContent,
    Tool,
    ToolArgumentsError,
    ToolContext,
    ToolError,
    ToolOutcome,
    ToolResult,
)
from trio_agent.toolkit import read_tool

Read = Callable[..., Awaitable[str]]


async def result_of(tool: Tool, **arguments: object) -> ToolResult:
    async def update(_: ToolResult) -> None:
        await trio.lowlevel.checkpoint()
        raise AssertionError("reading reports no progress")

    async def call_tool(*_: object) -> ToolOutcome:
        await trio.lowlevel.checkpoint()
        raise AssertionError("reading calls no other tool")

    context = ToolContext(
        tool_call_id="call", tool_name=tool.name, agent_context=Context(), update=update, call_tool=call_tool
    )
    return await tool.invoke(tool.bind(arguments), context)


def text_of(result: ToolResult) -> str:
    match result.content:
        case (TextContent(text=text),):
            return text
        case other:
            raise AssertionError(f"not one text: {other!r}")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a file of the temporary folder and gives the text."""
    tool = read_tool(tmp_path)

    async def read(path: str, **arguments: object) -> str:
        return text_of(await result_of(tool, path=path, **arguments))

    return read


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "five").write_bytes(b"1\n2\n3\n4\n5\n")
    (tmp_path / "noeol").write_bytes(b"1\n2")
    (tmp_path / "empty").touch()
    (tmp_path / "long").write_text("".join(f"line {number}\n" for number in range(1, 2501)))
    (tmp_path / "wide").write_text(("w" * 1000 + "\n") * 100)


async def error_of(reading: Awaitable[object]) -> str:
    with pytest.raises(ToolError) as caught:
        await reading
    return str(caught.value)


async def test_a_short_file_comes_whole_and_untouched(read: Read, tmp_path: Path) -> None:
    (tmp_path / "crlf").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "newline").write_bytes(b"\n")

    assert await read("five") == "1\n2\n3\n4\n5\n"
    assert await read("noeol") == "1\n2"
    assert await read("crlf") == "a\r\nb\r\n"
    assert await read("newline") == "\n"
    assert await read("empty") == "(empty file)"


async def test_offset_and_limit_count_lines_from_one(read: Read) -> None:
    assert await read("five", offset=5) == "5\n"
    assert await read("noeol", offset=2) == "2"
    assert await read("five", offset=4, limit=9) == "4\n5\n"
    assert await read("five", limit=5) == "1\n2\n3\n4\n5\n"
    assert await read("five", offset=2, limit=2) == "2\n3\n\n[2 more lines in file. Use offset=4 to continue.]"
    assert await read("long", offset=10, limit=3) == (
        "line 10\nline 11\nline 12\n\n[2488 more lines in file. Use offset=13 to continue.]"
    )


@pytest.mark.parametrize(("offset", "limit"), [(2, 2), (2.0, "2"), ("2", 2.0), (2.9, 2.5)])
async def test_numbers_are_taken_as_models_write_them(read: Read, offset: object, limit: object) -> None:
    assert (await read("five", offset=offset, limit=limit)).startswith("2\n3\n\n[")


@pytest.mark.parametrize("number", [0, -1, -3.5, 0.5])
async def test_offset_and_limit_below_one_are_errors(read: Read, number: float) -> None:
    assert await error_of(read("five", offset=number)) == f"offset must be 1 or more, not {number}"
    assert await error_of(read("five", limit=number)) == f"limit must be 1 or more, not {number}"


async def test_an_offset_beyond_the_end_tells_how_many_lines_there_are(read: Read) -> None:
    assert await error_of(read("five", offset=6)) == "Offset 6 is beyond end of file (5 lines total)"
    assert await error_of(read("noeol", offset=100)) == "Offset 100 is beyond end of file (2 lines total)"
    assert await error_of(read("empty", offset=2)) == "Offset 2 is beyond end of file (0 lines total)"


async def test_a_long_file_is_cut_at_2000_lines_and_the_note_leads_through_the_rest(read: Read) -> None:
    first = await read("long")
    second = await read("long", offset=2001)

    kept, _, note = first.partition("\n\n")
    assert note == "[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]"
    assert kept.splitlines() == [f"line {number}" for number in range(1, 2001)]
    assert second.splitlines() == [f"line {number}" for number in range(2001, 2501)]


async def test_wide_lines_are_cut_at_50_kb(tmp_path: Path) -> None:
    result = await result_of(read_tool(tmp_path), path="wide", offset=2)

    text = text_of(result)
    assert text.endswith("w\n\n[Showing lines 2-52 of 100 (50.0KB limit). Use offset=53 to continue.]")
    assert result.details == {
        "truncation": {
            "content": text.partition("\n\n")[0],
            "truncated": True,
            "truncatedBy": "bytes",
            "totalLines": 99,
            "totalBytes": 99 * 1001,
            "outputLines": 51,
            "outputBytes": 51 * 1001 - 1,
            "lastLinePartial": False,
            "firstLineExceedsLimit": False,
            "maxLines": 2000,
            "maxBytes": 51200,
        }
    }


async def test_without_a_cut_there_are_no_details(tmp_path: Path) -> None:
    assert (await result_of(read_tool(tmp_path), path="five", limit=1)).details == {}


async def test_a_line_that_is_too_long_comes_with_a_command_to_see_its_beginning(read: Read, tmp_path: Path) -> None:
    (tmp_path / "it's one").write_text("short\n" + "z" * 60_000 + "\nrest")

    assert await read("it's one", offset=2) == (
        "[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'it'\"'\"'s one' | head -c 51200]"
    )
    assert (await read("it's one")).startswith("short\n\n[Showing lines 1-1 of 3 (50.0KB limit). Use offset=2")
    assert await read("it's one", offset=3) == "rest"


async def test_a_byte_order_mark_is_not_shown(read: Read, tmp_path: Path) -> None:
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfhi\n")
    (tmp_path / "only bom").write_bytes(b"\xef\xbb\xbf")

    assert await read("bom") == "hi\n"
    assert await read("only bom") == "(empty file)"


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff\xfea\0", b"caf\xe9\n", b"a" * 4000 + b"\0"])
async def test_of_a_binary_file_only_the_size_is_told(read: Read, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "binary").write_bytes(data)

    size = "3.9KB" if len(data) > 1024 else f"{len(data)}B"
    assert await read("binary") == f"[Binary file: {size}, not shown]"


async def test_a_character_across_the_end_of_the_head_makes_no_binary_file(read: Read, tmp_path: Path) -> None:
    for shift in range(4):
        text = "x" * shift + "\U0001f600" * 2000
        (tmp_path / "smile").write_text(text, encoding="utf-8")
        assert await read("smile") == text


async def test_broken_text_far_into_a_file_shows_replacement_characters(read: Read, tmp_path: Path) -> None:
    (tmp_path / "late").write_bytes(b"x\n" * 3000 + b"a\xffb\n")

    assert await read("late", offset=3001) == "a\ufffdb\n"


@pytest.mark.parametrize(
    ("data", "mime_type"), [(png(3, 2), "image/png"), (jpeg(3, 2), "image/jpeg"), (gif(2000, 1), "image/gif")]
)
async def test_an_image_comes_as_a_block_whatever_the_name(tmp_path: Path, data: bytes, mime_type: str) -> None:
    (tmp_path / "picture.txt").write_bytes(data)

    result = await result_of(read_tool(tmp_path), path="picture.txt")

    assert result.content == (
        TextContent(text=f"Read image file [{mime_type}]"),
        ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type),
    )


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (png(1, 2001), "image/png"),
        (png(1, 1, before_pixels=png_chunk(b"tEXt", bytes(3_538_944))), "image/png"),
        (jpeg(3, 2)[:20], "image/jpeg"),
        (BMP, "image/bmp"),
    ],
    ids=["too many pixels", "too many bytes", "broken", "bitmap"],
)
async def test_an_image_that_models_do_not_take_is_left_out(
    read: Read, tmp_path: Path, data: bytes, mime_type: str
) -> None:
    (tmp_path / "picture").write_bytes(data)

    assert await read("picture") == (
        f"Read image file [{mime_type}]\n[Image omitted: could not be resized below the inline image size limit.]"
    )


async def test_an_animated_png_is_a_binary_file(read: Read, tmp_path: Path) -> None:
    (tmp_path / "moving.png").write_bytes(png(1, 1, before_pixels=png_chunk(b"acTL", bytes(8))))

    assert (await read("moving.png")).startswith("[Binary file: ")


async def test_a_text_named_like_an_image_is_text(read: Read, tmp_path: Path) -> None:
    (tmp_path / "fake.png").write_text("not an image")

    assert await read("fake.png") == "not an image"


async def test_what_is_no_file_is_a_clear_error(read: Read, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    assert await error_of(read("nope")) == "File not found: nope"
    assert await error_of(read("folder")) == "folder is a directory, use ls"
    assert await error_of(read("")) == "The path is empty"
    assert await error_of(read("loop")) == "Too many symbolic links: loop"
    assert await error_of(read("five/x")) == "Not a directory on the way to: five/x"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
async def test_a_named_pipe_is_refused_and_not_waited_for(read: Read, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert await error_of(read("pipe")) == "Not a regular file: pipe"


async def test_files_outside_the_root_are_refused_unless_told_otherwise(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "five")

    for path in ("../five", "link", str(tmp_path / "five"), "../nothing"):
        text = await error_of(result_of(read_tool(root), path=path))
        assert text == f"Path is outside the folder this tool may use: {path}"
    assert text_of(await result_of(read_tool(root, confined=False), path="../five")) == "1\n2\n3\n4\n5\n"


async def test_a_relative_root_is_that_of_when_the_tool_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = read_tool(".")
    monkeypatch.chdir("/")

    assert text_of(await result_of(tool, path="noeol")) == "1\n2"


def test_arguments_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    tool = read_tool(tmp_path)

    for arguments in ({}, {"path": 3.5, "offset": "two"}, {"path": "five", "limit": "many"}):
        with pytest.raises(ToolArgumentsError):
            tool.bind(arguments)


def test_the_schema_is_the_one_of_the_original(tmp_path: Path) -> None:
    properties: JsonObject = read_tool(tmp_path).parameters["properties"]

    assert {name: schema["type"] for name, schema in properties.items()} == {
        "path": "string",
        "offset": "number",
        "limit": "number",
    }
    assert read_tool(tmp_path).parameters["required"] == ["path"]


async def test_memory_stays_flat_however_large_the_file_is(read: Read, tmp_path: Path) -> None:
    # A sparse file: much to read, nothing on the disk.
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"text" * 2000 + b"\n")
        file.seek(1 << 28)
        file.write(b"\nlast\n")

    tracemalloc.start()
    try:
        assert await read("huge", offset=3) == "last\n"
        assert (await read("huge", offset=2)).startswith("[Line 2 is 256.0MB, exceeds 50.0KB limit.")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024


async def test_a_cancelled_read_stops_at_the_next_chunk_and_leaves_no_thread(tmp_path: Path) -> None:
    tool = read_tool(tmp_path)
    with (tmp_path / "endless").open("wb") as file:
        file.write(b"text\n" * 1000)
        file.truncate(1 << 42)  # sparse, and an hour to read

    with trio.move_on_after(0.05) as scope:
        await result_of(tool, path="endless")

    assert scope.cancelled_caught
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0


async def test_reading_is_a_checkpoint(tmp_path: Path) -> None:
    with trio.testing.assert_checkpoints():
        await result_of(read_tool(tmp_path), path="five")
