"""Bytes on their way to a reader that is slow, stands still, or has left: real pipes and files, and the real clock."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
import trio

from trio_agent._demo._output import Output

MUCH = b"".join(b"line %d\n" % number for number in range(50_000))


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The reading end as a descriptor, the writing end as a stream."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="ascii") as stream:
        yield reading, stream
    os.close(reading)


async def read(descriptor: int, size: int) -> bytes:
    received = b""
    while len(received) < size:
        await trio.lowlevel.wait_readable(descriptor)
        received += os.read(descriptor, 65536)
    return received


async def test_all_arrives_however_slow_the_reader_is(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = Output(stream)
    output.put(MUCH)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.flush)
        assert await read(reading, len(MUCH)) == MUCH


async def test_what_a_cancellation_cuts_off_goes_out_first_the_next_time(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = Output(stream)
    output.put(MUCH)

    with trio.move_on_after(0.01) as scope:
        await output.flush()
    assert scope.cancelled_caught

    output.put("the end\n")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.flush)
        assert await read(reading, len(MUCH) + 8) == MUCH + b"the end\n"


def writing_end_alone() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


async def test_a_reader_that_has_left_is_an_error() -> None:
    with writing_end_alone() as stream:
        output = Output(stream)
        output.put("text")

        with pytest.raises(BrokenPipeError):
            await output.flush()


async def test_a_file_on_a_disk_always_has_room(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w", encoding="utf-8") as stream:
        output = Output(stream)
        output.put(MUCH)
        await output.flush()

    assert path.read_bytes() == MUCH


async def test_what_the_encoding_lacks_is_replaced(pipe: tuple[int, TextIO]) -> None:
    reading, stream = pipe
    output = Output(stream)
    output.put("caf\u00e9\n")
    await output.flush()

    assert os.read(reading, 100) == b"caf?\n"
