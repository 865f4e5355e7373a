"""A module of LLVM assembly in pieces, which are compiled one by one, or by several processes at once, and loaded together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .text import RUNTIME

# bytes of assembly: LLVM compiles them in 150 ms, and for another piece it takes some 8 ms more, and memory three pages
LEAST = 1 << 17
_SYMBOL = re.compile(r'@(?:"[^"]*"|[\w.$]+)', re.ASCII)
_METADATA = re.compile(r"!\d+")


def pieces(text: str) -> list[str]:
    """What ``text`` (:meth:`codegen.llvm.text.ModuleText.render`) defines, in modules of at least :data:`LEAST` bytes of functions, in order.

    The first has the variables, and what belongs to no function of the program. Helpers and constants are in each module that uses them.
    """
    whole = _Module(text)
    several: list[list[str]] = [[]]
    size = 0
    for name in whole.functions:
        if name in whole.shared or name in whole.helpers:
            continue
        if size >= LEAST:
            several.append([])
            size = 0
        several[-1].append(name)
        size += sum(len(whole.functions[each]) for each in whole.used([name], whole.helpers))
    if len(several) == 1:
        return [text]
    first, *others = several
    return [whole.piece([*whole.shared, *first], True), *(whole.piece(names, False) for names in others)]


class _Module:
    """The lines of a module by the symbols that they define; ``shared`` are functions of no function of the program, ``helpers`` those that are only
    seen in the module."""

    def __init__(self, text: str):
        self.head: list[str] = []
        self.variables: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.declarations: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("!"):
                self.metadata[line[: line.index(" ")]] = line
                continue
            symbol = _SYMBOL.search(line)
            if symbol is None or not line.startswith(("@", "define ", "declare ")):
                self.head.append(line)
            elif line.startswith("define "):
                body = [line]
                while not body[-1].endswith("}"):
                    body.append(next(lines))
                self.functions[symbol[0]] = "\n".join(body)
            elif line.startswith("declare "):
                self.declarations[symbol[0]] = line
            else:
                of = self.constants if " private " in line else self.variables
                of[symbol[0]] = line
        self.helpers = {name for name, text in self.functions.items() if text.startswith("define internal ")}
        self.shared = [name for name in self.functions if name.startswith(f"@{RUNTIME}") and name not in self.helpers]

    def used(self, names: Iterable[str], among: Iterable[str]) -> list[str]:
        """The functions ``names``, and those of ``among`` that they use, and so on; in the order of the module."""
        found, left = set(names), list(names)
        while left:
            new = {*_SYMBOL.findall(self.functions[left.pop()])} & {*among} - found
            found |= new
            left += new
        return [name for name in self.functions if name in found]

    def piece(self, names: Iterable[str], is_first: bool) -> str:
        """A module of the functions ``names`` and of what they use. The first defines the variables, which no other module outside sees."""
        own = self.used(names, self.helpers)
        bodies = [self.functions[name] for name in own]
        used = set(_SYMBOL.findall("\n".join(bodies)))
        variables = [
            _seen(line) if is_first else _elsewhere(line)
            for name, line in self.variables.items()
            if is_first or name in used
        ]
        used.update(symbol for line in variables for symbol in _SYMBOL.findall(line))
        constants = [line for name, line in self.constants.items() if name in used]
        declared = [line for name, line in self.declarations.items() if name in used]
        others = [
            f"declare {text[len('define ') : text.index(' {')]}"
            for name, text in self.functions.items()
            if name in used and name not in own
        ]
        metadata = _reached(bodies, self.metadata)
        return "\n".join([*self.head, *variables, *constants, *bodies, *declared, *others, *metadata]) + "\n"


def _seen(line: str) -> str:
    """The definition of a variable that other modules see. (Were it hidden, they might have to be nearer than they are loaded.)"""
    return line.replace(" = internal ", " = ")


def _elsewhere(line: str) -> str:
    """The declaration of a variable, as ``@x = global i32 0, align 4`` or an internal one, that another module defines."""
    name, kind, of, *_, alignment = _seen(line).replace(" = ", " ").split()
    return f"{name} = external {kind} {of}, align {alignment}"


def _reached(bodies: Iterable[str], metadata: Mapping[str, str]) -> list[str]:
    """The metadata that functions refer to, and what these refer to, in order."""
    left = [one for text in bodies for one in _METADATA.findall(text)]
    found: set[str] = set()
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += _METADATA.findall(metadata[one])
    return [line for one, line in metadata.items() if one in found]
