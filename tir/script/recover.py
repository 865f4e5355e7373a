"""The text of a function that Python kept no source of: typed at a prompt before Python 3.13, given to ``exec``, ``-c``.

Candidate texts are tried (the command line, the input file, the prompt's history, strings in the callers' frames), and
one is accepted only if it compiles to the very code in question, so a wrong text is never used.
"""

from __future__ import annotations
import __future__

import os
import stat
import sys
from collections.abc import Iterator
from types import CodeType

_FUTURES = (0, __future__.annotations.compiler_flag)
_MOST_HISTORY = 2000


def recover(code: CodeType) -> list[str] | None:
    """The lines of the text that ``code`` was compiled from, or None."""
    marker = f" {code.co_name}"
    around = _defining(code)
    for text in _texts():
        if marker in text and _makes(text, code if around is None else around):
            return text.splitlines(keepends=True)
    return None


def _defining(code: CodeType) -> CodeType | None:
    """The code that is running the definition of ``code``: it holds the parameters' annotations, which ``code`` does not."""
    frame = sys._getframe(1)
    while frame is not None:
        if any(item is code for item in frame.f_code.co_consts):
            return frame.f_code
        frame = frame.f_back
    return None


def _makes(text: str, code: CodeType) -> bool:
    """Whether compiling ``text`` gives ``code``, at the same line."""
    for flags in _FUTURES:
        try:
            made = compile(text, code.co_filename, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return False
        if any(inner == code for inner in (made, *_nested(made))):
            return True
    return False


def _nested(code: CodeType) -> Iterator[CodeType]:
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _nested(item)


def _texts() -> Iterator[str]:
    yield from sys.orig_argv[1:]
    typed = _history()
    for text in (_input_file(), typed):
        if text:
            yield text
            yield from _statements(text)
    frame = sys._getframe(1)
    while frame is not None:
        for names in (frame.f_locals, frame.f_globals) if frame.f_locals is not frame.f_globals else (frame.f_locals,):
            yield from [value for value in list(names.values()) if isinstance(value, str) and "\n" in value]
        yield from [value for value in frame.f_code.co_consts if isinstance(value, str) and "\n" in value]
        frame = frame.f_back


def _input_file() -> str:
    """What Python reads its program from, where that is a file."""
    try:
        if not stat.S_ISREG(os.fstat(0).st_mode):
            return ""
        return os.pread(0, 1 << 24, 0).decode("utf-8", "replace")
    except (OSError, AttributeError):  # no standard input, or a system without pread
        return ""


def _history() -> str:
    """What was typed at the prompt, as far as readline remembers."""
    readline = sys.modules.get("readline")
    if readline is None:
        return ""
    last = readline.get_current_history_length()
    lines = (readline.get_history_item(n) for n in range(max(1, last - _MOST_HISTORY), last + 1))
    return "".join(f"{line}\n" for line in lines if line is not None)


def _statements(text: str) -> list[str]:
    """The top-level statements of what was typed, latest first: at a prompt, each counts its lines from one."""
    found: list[list[str]] = []
    decorated = False
    for line in text.splitlines():
        continues = line[:1] in (" ", "\t", ")", "]", "}", "#") or not line.strip()
        if found and (continues or decorated):
            found[-1].append(line)
        else:
            found.append([line])
        decorated = line.startswith("@") or (decorated and continues)
    return ["\n".join(lines) + "\n" for lines in reversed(found)]
