"""Text that can be sent: no lone surrogates, and no more than fits. Imports nothing."""

from __future__ import annotations

__all__ = ["clean_text", "shortened", "truncated"]


def clean_text(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded; two halves of a pair become its character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def shortened(text: str, most: int) -> str:
    """A text of a bounded length, with a note if something of it is missing."""
    if len(text) <= most:
        return text
    note = "... (shortened)"
    return text[: max(0, most - len(note))] + note


def truncated(text: str, most: int) -> str:
    """The beginning of a long output in whole lines, and a notice for the model after it.

    Args:
        text: the output.
        most: characters of it to keep; a last line that would be much shortened is dropped.
    """
    if len(text) <= most:
        return text
    line_end = text.rfind("\n", 0, most + 1)
    kept = text[: line_end if line_end > most // 2 else most]
    return f"{kept}\n\n[Output truncated: the first {len(kept)} of {len(text)} characters are shown]"
