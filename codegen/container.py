"""Saved modules as files: the code, its description, and a digest over both that is checked before either is used.

A file is the code itself (an object, a shared library, an archive), which linkers and other tools read as such, and
behind it, where they do not look, the description in JSON, its length, the digest, and a mark.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tir.errors import BuildError

from .elf.archive import member

FORMAT = 5  # of the description and of how code is called
_MARK = b"\0tir.save\0\r\n\x1a\n\xff\0"  # a transfer as text, which changes line ends, changes it
_TAIL = 8 + 32 + len(_MARK)  # of a file: the length of the description, the digest, the mark


@dataclass(frozen=True)
class File:
    """A saved file that is as it was written. ``kind`` of ``code``: ``"object"``, ``"library"`` or ``"cuda"``."""

    name: str
    kind: str
    code: bytes
    about: dict[str, Any]

    def field(self, name: str, form: Any) -> Any:
        """An entry of the description, which has a form as :func:`fits` takes it. Raises ``BuildError`` where it has not."""
        value = self.about.get(name)
        if not fits(value, form):
            raise BuildError(f"{self.name} has no {name!r} as Module.save writes it")
        return value


def fits(value: Any, form: Any) -> bool:
    """Whether plain data has a form: a type; ``[form]`` for a list of such, ``(form, form)`` for a list of these; ``{str: form}``
    for a dict of such by name, and a dict of forms for one with these names.

    >>> fits({"a": [1, 2]}, {"a": [int]}), fits([True], [int]), fits(["x", 3], (str, int)), fits({"b": 1}, {str: str})
    (True, False, True, False)
    """
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(each, form[0]) for each in value)
    if isinstance(form, tuple):
        return isinstance(value, list) and len(value) == len(form) and all(map(fits, value, form))
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return False
        if str in form:
            return all(fits(each, form[str]) for each in value.values())
        return value.keys() == form.keys() and all(fits(value[name], form[name]) for name in form)
    return isinstance(value, form) and (form is bool or not isinstance(value, bool))


def write(path: Path, kind: str, code: bytes, about: dict[str, Any]) -> None:
    """Write ``code`` with its description. Raises ``BuildError`` where ``path`` cannot be written."""
    write_bytes(path, sealed_with(kind, code, about))


def sealed_with(kind: str, code: bytes, about: dict[str, Any]) -> bytes:
    """``code`` with its description, as :func:`write` writes it."""
    described = json.dumps({"format": FORMAT, "kind": kind, "about": about}).encode()
    sealed = code + described + len(described).to_bytes(8, "little")
    return sealed + hashlib.sha256(sealed).digest() + _MARK


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write ``content``, whole or not at all: who interrupts it finds the file that was there before. Raises ``BuildError`` where
    that cannot be done."""
    part = path.parent / f".{os.getpid()}-{threading.get_ident()}.part"
    try:
        if path.exists() and (path.is_symlink() or not path.is_file() or not os.access(path, os.W_OK)):
            path.write_bytes(content)  # what cannot be replaced
            return
        part.write_bytes(content)
        if path.exists():
            part.chmod(path.stat().st_mode)
        part.replace(path)
    except (OSError, ValueError) as error:
        raise BuildError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)


def read(path: Path) -> File:
    """The saved file at ``path``. None of it is run, loaded or evaluated.

    Raises ``BuildError`` for a file that is not there, was not written by :func:`write`, or was changed after that.
    """
    if not path.is_file():
        raise BuildError(f"{str(path)!r} is a folder" if path.is_dir() else f"no file {str(path)!r} to load")
    try:
        data = member(path.read_bytes())
    except OSError as error:
        raise BuildError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if len(data) < _TAIL or not data.endswith(_MARK):
        raise BuildError(
            f"{path.name} is no whole file of Module.save: it does not end in the digest of its contents. It is another file, "
            "was saved by an earlier version, or was cut, linked or stripped after it was saved: save the module again"
        )
    sealed, digest = data[: -32 - len(_MARK)], data[-32 - len(_MARK) : -len(_MARK)]
    size = int.from_bytes(sealed[-8:], "little")
    if hashlib.sha256(sealed).digest() != digest or size > len(sealed) - 8:
        raise BuildError(
            f"{path.name} is damaged: the digest in it is not that of its contents; copy it again, or save the module again"
        )
    end = len(sealed) - 8 - size
    head = _described(path, sealed[end:-8])
    return File(path.name, head.get("kind", ""), sealed[:end], head["about"])


def _described(path: Path, text: bytes) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict) or not isinstance(head.get("about"), dict):
        raise BuildError(
            f"{path.name} has a digest that fits, and no description of its contents: Module.save did not write it"
        )
    if head.get("format") != FORMAT:
        raise BuildError(f"{path.name} was saved in format {head.get('format')}; this version reads {FORMAT}")
    return head
