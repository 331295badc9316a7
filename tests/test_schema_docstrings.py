from __future__ import annotations

import pytest

from trio_agent._docstrings import Docstring, parse_docstring

GOOGLE = """Read a file.

    It must exist: no file, no text.

    Args:
        path (str, optional): where it is,
            relative to the root.
        limit: how many lines.

            Zero for all.
        *rest: others

    Returns:
        The text.

    Raises:
        OSError: never.
    """

NUMPY = """Read a file.

    It must exist: no file, no text.

    Parameters
    ----------
    path : str, optional
        where it is,
        relative to the root.
    limit
        how many lines.

        Zero for all.
    *rest : str
        others

    Returns
    -------
    str
        The text.

    Raises
    ------
    OSError
        never.
    """

SPHINX = """Read a file.

    It must exist: no file, no text.

    :param path: where it is,
        relative to the root.
    :param int limit: how many lines.

        Zero for all.
    :param rest: others
    :type path: str
    :returns: The text.
    :raises OSError: never.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_parameters_are_found_in_every_style(text: str) -> None:
    assert parse_docstring(text).parameters == {
        "path": "where it is, relative to the root.",
        "limit": "how many lines.\nZero for all.",
        "rest": "others",
    }


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_description_is_all_but_parameters_and_exceptions(text: str) -> None:
    description = parse_docstring(text).description

    assert description.startswith("Read a file.\n\nIt must exist: no file, no text.\n\nReturns")
    assert description.endswith("The text.")


@pytest.mark.parametrize(
    "text",
    [
        "One line: with a colon.",
        "Note: this is no section.",
        "See also: the other.\n\nArgs: none, really.",
        ":class:`Foo` does it.",
        "First.\n\n    Indented: text\n    goes on.",
        "A rule\n------\nunder an unknown heading",
    ],
)
def test_text_in_no_known_style_is_all_description(text: str) -> None:
    import inspect

    assert parse_docstring(text) == Docstring(inspect.cleandoc(text))


def test_no_docstring_says_nothing() -> None:
    assert parse_docstring(None) == parse_docstring("") == Docstring()


def test_two_numpy_parameters_share_a_text() -> None:
    assert parse_docstring("P.\n\nParameters\n----------\na, b : int\n    both\n").parameters == {
        "a": "both",
        "b": "both",
    }


def test_a_second_section_of_parameters_adds_to_the_first() -> None:
    text = "P.\n\nArgs:\n    a: one\n\nKeyword Args:\n    b: two\n"

    assert parse_docstring(text).parameters == {"a": "one", "b": "two"}


def test_the_last_section_ends_with_the_docstring() -> None:
    assert parse_docstring("P.\n\nArgs:\n    a: one").parameters == {"a": "one"}
    assert parse_docstring("P.\n\nArgs:").parameters == {}
