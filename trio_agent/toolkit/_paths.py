"""Which file a model means by a path, and whether a tool may touch it.

A path is relative to the root of the tools, absolute, below ``~``, or a ``file:`` URL. A name that does not exist may
still be found: models write a plain space where the file has another kind of blank, or compose an accent differently.
The exact name always comes first. Tools stay below their root, symbolic links followed, unless they were told
otherwise. These functions ask the file system and so run in a worker thread. Failures are :class:`ToolError`, worded
with the path as the model wrote it.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trio_agent import ToolError

__all__ = ["find_existing", "path_error"]

_MAX_CANDIDATES = 5


def find_existing(path: str, root: Path, *, confined: bool) -> Path:
    """The real path of the file or folder that the model means.

    The literal path, else the same without one leading ``@``, else the only entry of its folder whose name differs
    in blanks, composition or the apostrophe alone.

    Args:
        path: as the model wrote it.
        root: what relative paths are relative to.
        confined: refuse everything that is not below the root.

    Raises:
        ToolError: it does not exist, is ambiguous, or lies outside the root.
    """
    try:
        real_root = Path(os.path.realpath(root))
        for attempt in (path, path[1:]) if path.startswith("@") else (path,):
            wanted = root / _expand(attempt)
            # Refused before it is looked for: whether it exists is nobody's business either.
            real = _real_path(wanted, real_root, path, confined=confined)
            if os.path.lexists(real):
                return real
        return _find_lookalike(root / _expand(path), real_root, path, confined=confined)
    except (OSError, ValueError) as error:
        raise path_error(error, path) from error


def path_error(error: OSError | ValueError, path: str) -> ToolError:
    """What the model is told about a failure of the file system."""
    match error:
        case FileNotFoundError():
            return ToolError(f"File not found: {path}")
        case PermissionError():
            return ToolError(f"Permission denied: {path}")
        case NotADirectoryError():
            return ToolError(f"Not a directory on the way to: {path}")
        case OSError(errno=errno.ELOOP):
            return ToolError(f"Too many symbolic links: {path}")
        case OSError():
            return ToolError(f"{error.strerror or type(error).__name__}: {path}")
        case _:
            return ToolError(f"Not a valid path: {path!r}")


def _expand(path: str) -> Path:
    if not path:
        raise ToolError("The path is empty")
    if path.startswith("file://"):
        url = urlsplit(path)
        if url.netloc not in ("", "localhost"):
            raise ToolError(f"Not a file of this machine: {path}")
        return Path(unquote(url.path))
    # Not ~user: whose files are meant is not for a model to choose.
    return Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)


def _real_path(wanted: Path, real_root: Path, path: str, *, confined: bool) -> Path:
    real = Path(os.path.realpath(wanted))
    if confined and not real.is_relative_to(real_root):
        raise ToolError(f"Path is outside the folder this tool may use: {path}")
    return real


def _find_lookalike(wanted: Path, real_root: Path, path: str, *, confined: bool) -> Path:
    folder = _real_path(wanted.parent, real_root, path, confined=confined)
    folded = _fold(wanted.name)
    with os.scandir(folder) as entries:
        alike = sorted(entry.name for entry in entries if _fold(entry.name) == folded)
    match alike:
        case [name]:
            return _real_path(folder / name, real_root, path, confined=confined)
        case []:
            raise ToolError(f"File not found: {path}")
        case _:
            names = ", ".join(map(repr, alike[:_MAX_CANDIDATES]))
            raise ToolError(f"File not found: {path}. Several names look like it: {names}")


def _fold(name: str) -> str:
    """One spelling for all names that look the same; NFKC also turns every odd blank into a plain one."""
    return unicodedata.normalize("NFKC", name).replace("\u2019", "'")
