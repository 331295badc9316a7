"""Which file is meant, and what lies outside."""

import os
from pathlib import Path

import pytest

from trio_agent import ToolError
from trio_agent.toolkit._paths import find_existing

SCREENSHOT = "Screenshot at 3.00.00\u202fp.m..png"
DECOMPOSED = "Sni\u0301mek v\u00a013.05.png"


def found(path: str, root: Path, *, confined: bool = True) -> str:
    return find_existing(path, root, confined=confined).relative_to(root).as_posix()


def refusal(path: str, root: Path, *, confined: bool = True) -> str:
    with pytest.raises(ToolError) as caught:
        find_existing(path, root, confined=confined)
    return str(caught.value)


@pytest.fixture
def odd_names(tmp_path: Path) -> Path:
    for name in (SCREENSHOT, DECOMPOSED, "a b.txt", "a\u00a0b.txt", "it\u2019s.txt"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (SCREENSHOT, SCREENSHOT),
        ("Screenshot at 3.00.00 p.m..png", SCREENSHOT),
        ("Sn\u00edmek v 13.05.png", DECOMPOSED),
        ("a b.txt", "a b.txt"),
        ("it's.txt", "it\u2019s.txt"),
    ],
)
def test_exact_names_come_first_and_lookalikes_are_found(odd_names: Path, path: str, name: str) -> None:
    assert name == found(path, odd_names)


def test_a_lookalike_is_not_a_name_in_another_case(odd_names: Path) -> None:
    assert refusal("A B.txt", odd_names) == "File not found: A B.txt"


def test_several_lookalikes_are_named_and_none_is_taken(odd_names: Path) -> None:
    text = refusal("a\u3000b.txt", odd_names)

    assert "'a b.txt'" in text
    assert "'a\\xa0b.txt'" in text


@pytest.mark.parametrize("blank", ["\u00a0", *map(chr, range(0x2000, 0x200B)), "\u202f", "\u205f", "\u3000"])
def test_every_odd_blank_looks_like_a_space(tmp_path: Path, blank: str) -> None:
    (tmp_path / f"a{blank}b").touch()

    assert f"a{blank}b" == found("a b", tmp_path)


def test_one_leading_at_sign_is_dropped_only_if_the_literal_name_is_missing(tmp_path: Path) -> None:
    for name in ("plain", "@literal", "literal"):
        (tmp_path / name).touch()

    assert found("@plain", tmp_path) == "plain"
    assert found("@literal", tmp_path) == "@literal"
    assert refusal("@@plain", tmp_path) == "File not found: @@plain"


def test_absolute_paths_home_and_file_urls_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a b").touch()

    assert found(str(tmp_path / "a b"), tmp_path) == "a b"
    assert found("~/a b", tmp_path) == "a b"
    assert found("~", tmp_path) == "."
    assert found((tmp_path / "a b").as_uri(), tmp_path) == "a b"
    assert found("file://localhost" + (tmp_path / "a%20b").as_posix(), tmp_path) == "a b"
    assert "not a file of this machine" in refusal("file://elsewhere/a", tmp_path).lower()


def test_the_home_of_another_user_is_not_looked_up(tmp_path: Path) -> None:
    assert refusal("~root/x", tmp_path, confined=False) == "File not found: ~root/x"


def test_paths_outside_are_refused_whether_they_exist_or_not(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").touch()
    (tmp_path / "root-and-more").touch()
    (root / "file-link").symlink_to(tmp_path / "secret")
    (root / "folder-link").symlink_to(tmp_path)
    (root / "dangling").symlink_to(tmp_path / "nowhere")

    outside = ["../secret", "../nothing", "../root-and-more", "file-link", "folder-link/secret", "folder-link/nothing"]
    for path in [*outside, "dangling", "@../secret", "sub/../../secret", str(tmp_path / "secret"), "/etc/passwd", ".."]:
        assert f"Path is outside the folder this tool may use: {path}" == refusal(path, root)

    assert tmp_path / "secret" == find_existing("../secret", root, confined=False)


def test_a_lookalike_that_leads_outside_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").touch()
    (root / "a\u00a0b").symlink_to(tmp_path / "secret")

    assert "outside" in refusal("a b", root)


def test_links_inside_and_a_root_that_is_a_link_are_fine(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "file").touch()
    (real / "link").symlink_to("file")
    root = tmp_path / "root"
    root.symlink_to(real)

    assert real / "file" == find_existing("link", root, confined=True)
    assert real / "file" == find_existing(str(root / "file"), root, confined=True)


def test_what_cannot_be_a_path_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")

    assert refusal("a\0b", tmp_path) == r"Not a valid path: 'a\x00b'"
    assert refusal("a\ud83d", tmp_path) == r"Not a valid path: 'a\ud83d'"
    assert f"File not found: {'x' * 300}" == refusal("x" * 300, tmp_path)
    assert refusal("file/x", tmp_path) == "Not a directory on the way to: file/x"
    assert refusal("no/x", tmp_path) == "File not found: no/x"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_that_may_not_be_searched_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)

    assert refusal("locked/x", tmp_path) == "Permission denied: locked/x"
