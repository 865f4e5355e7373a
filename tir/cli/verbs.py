"""Verbs of the command, and what they answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """What a verb found: ``text`` for a person, ``data`` for ``--json``, and ``right``, which is the exit status.

    >>> Answer("2 programs", {"count": 2}).right
    True
    """

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    right: bool = True


@dataclass
class Verb:
    """A verb: ``about`` is its help, ``example`` a command line that works on the file ``kernels.py`` of the documentation,
    ``options`` adds its own options to a parser, ``run`` answers."""

    name: str
    about: str
    example: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Answer]


VERBS: dict[str, Verb] = {}
Run = Callable[[argparse.Namespace], Answer]


def verb(example: str, *options: Callable[[argparse.ArgumentParser], None]) -> Callable[[Run], Run]:
    """Make a function the verb of its name; its docstring is the help."""

    def add(parser: argparse.ArgumentParser) -> None:
        for each in options:
            each(parser)

    def register(run: Run) -> Run:
        VERBS[run.__name__] = Verb(run.__name__, run.__doc__ or "", example, add, run)
        return run

    return register


def option(*names: str, **settings: Any) -> Callable[[argparse.ArgumentParser], None]:
    """One option or argument, as ``add_argument`` takes it."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(*names, **settings)

    return add


PROGRAM = option(
    "program",
    metavar="FILE[:NAME]",
    help="a .tir file, a .py file (which is run; kernels.py:matmul(512) calls a function of it), or - for standard input",
)
MODEL = option(
    "program",
    metavar="FILE[:NAME]",
    help="a .tir file, a .py file (which is run), - for standard input, a saved module, or an .onnx model",
)
SHAPE = option(
    "--shape",
    action="append",
    default=[],
    metavar="NAME=1,3,…",
    help="of an input of a model, where the model leaves sizes open",
)
TARGET = option("--target", default="llvm", help="llvm (default), cuda, with options as in 'llvm -mcpu=…'")
