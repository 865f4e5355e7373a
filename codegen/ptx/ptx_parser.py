"""PTX text as a module. Everything is read; a directive that is not known is an error that names it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .syntax import (
    BYTES,
    Address,
    Both,
    Function,
    Imm,
    Instruction,
    Name,
    Negated,
    PTXError,
    PTXModule,
    Reg,
    Special,
    Variable,
    Vector,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w%$.]+(?:::[\w.]+)*|[{}\[\](),;:@!|<>=+\-]')
_SPECIAL = re.compile(
    r"%((?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)\.[xyz]|cluster_n?ctarank|is_explicit_cluster|laneid|warpid|nwarpid|"
    r"lanemask_(?:eq|lt|le|gt|ge)|clock|clock64)$"
)
_NUMBER = re.compile(r"\d\w*$")
_LINKING = (".visible", ".extern", ".weak", ".common")
_SKIPPED_IN_HEAD = {".maxntid": 3, ".reqntid": 3, ".minnctapersm": 1, ".maxnreg": 1, ".noreturn": 0, ".explicitcluster": 0,
                    ".reqnctapercluster": 3, ".maxclusterrank": 1}  # fmt: skip


class Token(NamedTuple):
    text: str
    line: int


def parse(text: str) -> PTXModule:
    """The module of ``text``. Raises ``PTXError`` for what it does not know."""
    return _Parser(text).module()


def _tokens(text: str) -> list[Token]:
    plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found, line, at = [], 1, 0
    for m in _TOKEN.finditer(plain):
        between = plain[at : m.start()]
        if between.strip():
            raise PTXError(f"PTX line {line}: {between.strip()[:40]!r} is not understood")
        line += between.count("\n")
        found.append(Token(m[0], line))
        at = m.end()
    if plain[at:].strip():
        raise PTXError(f"PTX line {line}: {plain[at:].strip()[:40]!r} is not understood")
    return found


def number(text: str) -> Imm:
    """A literal: ``12``, ``0x1F``, ``0f3F800000``, ``0d…``."""
    if text[:2] in ("0f", "0F"):
        return Imm(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return Imm(int(text[2:], 16), 64)
    plain = text.rstrip("U")
    if len(plain) > 1 and plain[0] == "0" and plain.isdigit():
        return Imm(int(plain, 8))
    return Imm(int(plain, 0))


class _Scope:
    """The names declared between braces. A family ``%r<9>`` has its type by the prefix."""

    def __init__(self, suffix: str):
        self.suffix = suffix
        self.registers: dict[str, str] = {}
        self.families: dict[str, tuple[str, int]] = {}
        self.variables: set[str] = set()
        self.labels: set[str] = set()

    def type_of(self, name: str) -> str | None:
        if name in self.registers:
            return self.registers[name]
        prefix = name.rstrip("0123456789")
        kind, count = self.families.get(prefix, ("", 0))
        return kind if prefix != name and int(name[len(prefix) :]) < count else None


class _Parser:
    def __init__(self, text: str):
        self.tokens = _tokens(text)
        self.lines = text.splitlines()
        self.at = 0
        self.made = PTXModule()
        self.scopes: list[_Scope] = []
        self.function: Function | None = None
        self.count = 0
        self.source = 0  # the line of the source of what follows
        self.used = -1  # the bytes that count of what the next instruction loads
        self.called_from: dict[int, int] = {}  # of functions that were put in place of calls, by line

    # ------------------------------------------------------------ tokens

    @property
    def next(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        if self.at >= len(self.tokens):
            raise PTXError(f"PTX ends where {wanted or 'more'!r} is expected")
        found = self.tokens[self.at]
        if wanted and found.text != wanted:
            raise self.error(f"expected {wanted!r}, not {found.text!r}")
        self.at += 1
        return found.text

    def skip(self, wanted: str) -> bool:
        if self.next == wanted:
            self.at += 1
            return True
        return False

    def error(self, message: str) -> PTXError:
        line = self.tokens[min(self.at, len(self.tokens) - 1)].line
        return PTXError(f"PTX line {line}: {message}\n{line:5} | {self.lines[line - 1].strip()}")

    # ------------------------------------------------------------ the module

    def module(self) -> PTXModule:
        while self.at < len(self.tokens):
            external = False
            while self.next in _LINKING:
                external = self.take() == ".extern" or external
            word = self.take()
            if word in (".version", ".address_size"):
                self.take()
            elif word == ".target":
                self.made.target = self.take()
                while self.skip(","):
                    self.take()
            elif word in (".entry", ".func"):
                self.read_function(word == ".entry")
            elif word in (".global", ".const", ".shared"):
                found = self.variable(word[1:], external)
                self.made.variables[found.name] = found
            elif word == ".pragma":
                self.statement()
            elif word == ".file":
                self.take()
                self.take()
            elif word == ".section":
                while self.take() != "}":
                    pass
            else:
                self.at -= 1
                raise self.error(f"the directive {word} is not known to the executor")
        return self.made

    def statement(self) -> None:
        while not self.skip(";"):
            self.take()

    def variable(self, space: str, external: bool = False) -> Variable:
        """``.align 4 .b8 name[64] = {…};`` after its space."""
        align, kind = 1, ""
        while self.next.startswith("."):
            word = self.take()
            if word == ".align":
                align = number(self.take()).value
            elif word[1:] in BYTES:
                kind = word[1:]
            elif word not in (".ptr", ".global", ".shared", ".const"):
                self.at -= 1
                raise self.error(f"{word} of a variable is not known to the executor")
        name, count = self.take(), 1
        while self.skip("["):
            if self.next == "]":
                count = 0
            else:
                count *= number(self.take()).value
            self.take("]")
        # constants without an initializer are zero
        data = self.initial(kind) if self.skip("=") else b"" if space == "const" and not external else None
        if self.next == ";":
            self.take()
        each = BYTES[kind]
        if data is not None:
            data = data.ljust(each * count, b"\0")
        return Variable(name, space, max(align, each), each * count, data, external)

    def initial(self, kind: str) -> bytes:
        values = []
        several = self.skip("{")
        while True:
            negative = self.skip("-")
            value = number(self.take()).value
            values.append(-value if negative else value)
            if not (several and self.skip(",")):
                break
        if several:
            self.take("}")
        each = BYTES[kind]
        return b"".join((v % (1 << 8 * each)).to_bytes(each, "little") for v in values)

    def parameters(self) -> list[Variable]:
        found: list[Variable] = []
        self.take("(")
        while not self.skip(")"):
            self.take(".param")
            found.append(self.variable("param"))
            self.skip(",")
        return found

    def read_function(self, entry: bool) -> None:
        returns = self.parameters() if self.next == "(" else []
        name = self.take()
        params = self.parameters() if self.next == "(" else []
        cluster = self.in_head()
        if self.skip(";"):
            return
        self.function = Function(name, entry, params, returns, cluster=cluster)
        self.scopes = [_Scope("")]
        self.scopes[0].variables.update(v.name for v in (*params, *returns))
        self.take("{")
        while self.scopes:
            self.in_body()
        self.made.functions[name] = self.function

    def in_head(self) -> tuple[int, int, int] | None:
        """The directives between parameters and body; the blocks of a cluster, if they are given."""
        cluster = None
        while self.next in _SKIPPED_IN_HEAD:
            word, sizes = self.take(), [1, 1, 1]
            for k in range(_SKIPPED_IN_HEAD[word]):
                sizes[k] = number(self.take()).value
                if not self.skip(","):
                    break
            if word == ".reqnctapercluster":
                cluster = (sizes[0], sizes[1], sizes[2])
        return cluster

    # ------------------------------------------------------------ bodies

    def in_body(self) -> None:
        assert self.function is not None
        word = self.next
        if word == "{":
            self.take()
            self.count += 1
            self.scopes.append(_Scope(f"@{self.count}"))
            self.scopes[-1].labels = self.labels_ahead()
        elif word == "}":
            self.take()
            self.scopes.pop()
        elif word == ".reg":
            self.registers()
        elif word in (".local", ".shared", ".param"):
            found = self.variable(self.take()[1:])
            scope = self.scopes[-1]
            scope.variables.add(found.name)
            self.function.variables.append(
                Variable(found.name + scope.suffix, found.space, found.align, found.size, found.data)
            )
        elif word == ".pragma":
            self.pragma()
        elif word == ".loc":
            self.location()
        elif word.startswith("."):
            raise self.error(f"the directive {word} is not known to the executor")
        elif self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == ":":
            label = word + (self.scopes[-1].suffix if word in self.scopes[-1].labels else "")
            if label in self.function.labels:
                raise self.error(f"the label {word} is there twice")
            self.take()
            self.function.labels[label] = len(self.function.body)
            self.take(":")
        else:
            self.function.body.append(self.instruction())

    def labels_ahead(self) -> set[str]:
        """The labels of the braces that begin here, which are names inside of them alone."""
        found, depth, at = set(), 1, self.at
        while depth and at + 1 < len(self.tokens):
            word = self.tokens[at].text
            depth += {"{": 1, "}": -1}.get(word, 0)
            if depth == 1 and self.tokens[at + 1].text == ":":
                found.add(word)
            at += 1
        return found

    def registers(self) -> None:
        self.take(".reg")
        kind, scope = self.take()[1:], self.scopes[-1]
        if kind not in BYTES:
            raise self.error(f"registers of type .{kind} are not known to the executor")
        while True:
            name = self.take()
            if self.skip("<"):
                scope.families[name] = kind, number(self.take()).value
                self.take(">")
            else:
                scope.registers[name] = kind
            if not self.skip(","):
                break
        self.take(";")

    def instruction(self) -> Instruction:
        first, guard = self.at, None
        if self.skip("@"):
            negated = self.skip("!")
            register = self.named(self.take())
            if not isinstance(register, Reg):
                raise self.error("a guard is a register")
            guard = register, negated
        opcode, operands = self.take(), []
        while not self.skip(";"):
            operands.append(self.operand())
            if self.next != ";":
                self.take(",")
        text = " ".join(t.text for t in self.tokens[first : self.at])
        text = re.sub(r" ([,;)\]}>])", r"\1", re.sub(r"([@!(\[{<]) ", r"\1", text))
        used, self.used = self.used, -1
        return Instruction(opcode, tuple(operands), guard, self.tokens[first].line, text, self.source, used)

    def pragma(self) -> None:
        """``.pragma "used_bytes_mask 511";``: of what is loaded next, a bit for each byte that is used."""
        self.take(".pragma")
        name, _, value = self.take().strip('"').partition(" ")
        if name == "used_bytes_mask":
            self.used = number(value).value
        self.statement()

    def location(self) -> None:
        """``.loc file line column, function_name label, inlined_at file line column``: the place of a call counts, also
        of one that is inside of a function that was called."""
        self.take(".loc")
        line = self._place()
        if self.skip(","):
            self.take("function_name")
            self.take()
            if self.skip("+"):
                self.take()
            self.take(",")
            self.take("inlined_at")
            caller = self._place()
            self.called_from[line] = self.called_from.get(caller, caller)
            line = caller
        self.source = self.called_from.get(line, line)

    def _place(self) -> int:
        _, line, _ = (number(self.take()).value for _ in range(3))
        return line

    def operand(self) -> Any:
        if self.skip("["):
            base, offset = self.operand(), 0
            while self.next in ("+", "-"):
                sign = 1 if self.take() == "+" else -1
                if self.skip("-"):
                    sign = -sign
                offset += sign * number(self.take()).value
            coordinates = self.operand() if self.skip(",") else None
            self.take("]")
            return Address(base, offset, coordinates)
        if self.next in ("{", "("):
            end = {"{": "}", "(": ")"}[self.take()]
            parts = []
            while not self.skip(end):
                parts.append(self.operand())
                self.skip(",")
            return Vector(tuple(parts))
        if self.skip("!"):
            return Negated(self.named(self.take()))
        if self.skip("-"):
            found = number(self.take())
            return Imm(-found.value)
        word = self.take()
        if _NUMBER.match(word):
            return number(word)
        made = self.named(word)
        return Both(made, self.named(self.take())) if self.skip("|") else made

    def named(self, name: str) -> Any:
        if name == "_":
            return None
        if name == "WARP_SZ":
            return Imm(32)
        for scope in reversed(self.scopes):
            kind = scope.type_of(name)
            if kind is not None:
                return Reg(name + scope.suffix, kind)
            if name in scope.variables or name in scope.labels:
                return Name(name + scope.suffix)
        special = _SPECIAL.match(name)
        if special:
            return Special(special[1])
        if name.startswith("%"):
            self.at -= 1
            raise self.error(f"the register {name} is not known to the executor")
        return Name(name)
