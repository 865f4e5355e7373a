"""From a command line to the answer of a verb: its parsers, how answers and errors are printed, the exit status."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from ..command import answered
from ..errors import ModelError, ParseError
from ..names import did_you_mean
from . import execution, explore, file_verbs, models, program_texts, tuning_verb
from .program_files import FileError
from .verbs import VERBS

__all__ = ["execution", "explore", "file_verbs", "main", "models", "program_texts", "tuning_verb"]

DESCRIPTION = """What becomes of a program, and whether it is right. FILE is a text of the dialect (.tir, or - for standard
input), of which nothing is run; a Python file, which is run; a saved module; or an .onnx model. FILE:NAME is one
program in it.
The exit status is 0 if all is right, 1 if something is wrong, 2 for a command that there is not."""


class Usage(Exception):
    """A command line that there is not."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        wrong = re.fullmatch(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", message, re.S)
        near = did_you_mean(wrong[2], re.findall(r"[\w.-]+", wrong[3])) if wrong else ""
        text = wrong[1] + near if wrong and near else message
        raise Usage(f"{self.prog}: {' '.join(text.split())} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As that of ``argparse``; an argument that there is not is an error of the verb, with the option that it resembles."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return found, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status: 0 right, 1 wrong, 2 for a command line that there is not. Errors are one line; with
    ``--verbose``, all that is known of them.

    >>> main(["show", "nowhere.py"])
    1
    """
    import sys

    try:
        options = _parser().parse_args(arguments)
    except Usage as error:
        print(error, file=sys.stderr)
        return 2
    return answered(lambda: _print(options), failed=1, shown=_verbose if options.verbose else in_one_line)


def _print(options: Any) -> int:
    answer = VERBS[options.verb].run(options)
    print(
        json.dumps({"right": answer.right, **(answer.data or {"text": answer.text})}) if options.json else answer.text
    )
    return 0 if answer.right else 1


def _parser() -> argparse.ArgumentParser:
    from .. import __version__

    parser = Parser(prog="tir", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tir {__version__}")
    commands = parser.add_subparsers(required=True, metavar="VERB", dest="verb", parser_class=Parser)
    for _, verb in sorted(VERBS.items()):
        first = " ".join(verb.about.split()).partition(". ")[0].rstrip(".")
        command = commands.add_parser(
            verb.name, help=first[0].lower() + first[1:], description=verb.about, epilog=f"example: {verb.example}"
        )
        verb.options(command)
        command.add_argument("--json", action="store_true", help="print the answer as one JSON object")
        command.add_argument("--verbose", action="store_true", help="print errors with all their lines")
    return parser


def in_one_line(error: Exception) -> str:
    if isinstance(error, ParseError) and error.diagnostics:
        first, more = error.diagnostics[0], len(error.diagnostics) - 1
        place = f"{first.span.filename}:{first.span.line}:{first.span.col + 1}"
        notes = "".join(f"; {note}" for note in first.notes)
        return " ".join(f"{place}: {first.message}{notes}{f' (and {more} more)' if more else ''}".split())
    if isinstance(error, ModelError) and error.faults:
        return str(error)  # the table is the answer
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0] + (" (--verbose shows more)" if len(lines) > 1 else "")


def _verbose(error: Exception) -> str:
    return "\n".join([*(error.frames if isinstance(error, FileError) else ()), str(error) or type(error).__name__])
