"""The functions of a module in C: their symbols, parameters and prototypes."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tir.buffer import Buffer
from tir.dtype import DType
from tir.errors import BuildError
from tir.expr import Var
from tir.function import PrimFunc

from ..c_names import identifier, is_reserved, parameter
from ..llvm.signature import buffer_alignment, slots_of
from ..llvm.text import own_name, symbol
from ..llvm.types import memory_element
from . import xla
from .argument_checks import check_name, tensors_name


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function: its name, its type in C and in LLVM, and a comment for the header. ``held`` is the symbol of
    what the file holds for it: in C there is no such parameter."""

    name: str
    c_type: str
    llvm_type: str
    note: str = ""
    held: str = ""

    @property
    def declared(self) -> str:
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True)
class Function:
    """A saved function: ``name`` in the module, ``symbol`` and parameters in C. ``held`` are the symbols of what the file
    holds for parameters, by their names."""

    name: str
    symbol: str
    func: PrimFunc
    written: frozenset[int]
    held: Mapping[str, str] = field(default_factory=dict)

    def with_held(self, held: Mapping[str, str]) -> Function:
        return replace(self, held=held)

    @property
    def call(self) -> str:
        """The name, in the module, of the entry that takes an array of argument slots."""
        return own_name(self.name)

    @property
    def slots(self) -> list[Var]:
        """The variables behind the parameters."""
        return slots_of(self.func)

    def parameters(self, reserved: Iterable[str] = ()) -> list[Parameter]:
        """The parameters; none has a name of ``reserved``."""
        taken = set(reserved)
        return [self._parameter(k, var, taken) for k, var in enumerate(self.slots)]

    def _parameter(self, k: int, var: Var, taken: set[str]) -> Parameter:
        buffer = self.func.buffer_map.get(var)
        name = parameter(var.name if buffer is None else buffer.name, taken)
        taken.add(name)
        if buffer is None:
            return Parameter(name, c_scalar(var.dtype), _llvm_type(var.dtype))
        shape = ", ".join(map(repr, buffer.shape))
        strides = f", strides ({', '.join(map(repr, buffer.strides))}) in elements" if buffer.strides else ""
        note = f"{buffer.dtype} ({shape}){strides}, aligned to {buffer_alignment(buffer)} bytes"
        const = "" if k in self.written else "const "
        return Parameter(name, f"{const}{c_scalar(buffer.dtype.element)} *", "ptr", note, self.held.get(name, ""))

    @property
    def result(self) -> Parameter | None:
        """The last parameter of a function that returns a value: the address of the result; None without a value."""
        dtype = self.func.ret_type
        if dtype.code == "void":
            return None
        return Parameter("result", f"{c_scalar(dtype)} *", "ptr", f"the {dtype} that the function returns")

    @property
    def by_tensors(self) -> str:
        """The symbol of the function that takes tensors."""
        return f"{self.symbol}_tensors"

    @property
    def _arrays(self) -> list[tuple[Buffer, bool]]:
        """The buffers that C gives, and whether each is written."""
        of = [(self.func.buffer_map.get(p), k in self.written) for k, p in enumerate(self.func.params)]
        return [(b, written) for b, written in of if b is not None and b.name not in self.held]

    @property
    def by_xla(self) -> str:
        """The symbol of the handler of XLA; empty for a function that takes or returns more than arrays."""
        numbers = any(p not in self.func.buffer_map for p in self.func.params) or self.result is not None
        fits = not numbers and all(xla.is_passed(b) for b, _ in self._arrays)
        return f"{self.symbol}_xla" if fits and self._arrays else ""

    def handler(self, error: str) -> str:
        """The handler of XLA as LLVM assembly, if there is one; ``error`` is the function that gives the message of a code."""
        return xla.Handler(self.by_xla, self.by_tensors, error, self._arrays).text() if self.by_xla else ""

    def wrapper(self, prefix: str, checked: bool) -> str:
        """The C functions as LLVM assembly: they store their arguments into slots and call the entry, after the checks."""
        entry = [check_name(self.name), self.call] if checked else [self.call]
        text = self._wrapper(self.symbol, self.parameters(), prefix, entry)
        if checked:
            text += self._wrapper(self.by_tensors, self._tensors(""), prefix, [tensors_name(self.name), *entry])
        return text

    def _wrapper(self, name: str, given: list[Parameter], prefix: str, stages: list[str]) -> str:
        """A function that puts its arguments into slots, calls the ``stages``, and returns the first code other than 0."""
        count = len(self.slots)
        params = [f"{_passed(p.llvm_type, p.c_type)} %a{k}" for k, p in enumerate(given) if not p.held]
        lines = [f"  %slots = alloca [{count + 4} x i64], align 8"]
        for k, p in enumerate(given):
            lines.append(f"  %p{k} = getelementptr inbounds i64, ptr %slots, i64 {k}")
            lines.append(f"  store {p.llvm_type} {f'@{p.held}' if p.held else f'%a{k}'}, ptr %p{k}, align 8")
        lines.append(f"  %values = getelementptr inbounds i64, ptr %slots, i64 {count + 1}")
        lines.append("  store i64 0, ptr %values, align 8")
        if self.result is not None:
            params.append("ptr %result")
            lines.append(f"  %place = getelementptr inbounds i64, ptr %slots, i64 {count}")
            lines.append("  store ptr %result, ptr %place, align 8")
        for k, stage in enumerate(stages):
            lines.append(f"  %code{k} = call i32 {symbol(prefix + stage)}(ptr %slots)")
            lines.append(f"  %fails{k} = icmp ne i32 %code{k}, 0")
            lines += [f"  br i1 %fails{k}, label %failed, label %after{k}", f"after{k}:"]
        if self.result is not None:
            type_ = _llvm_type(self.func.ret_type)
            lines.append(f"  %value = load {type_}, ptr %place, align 8")
            lines.append(f"  store {type_} %value, ptr %result, align 1")
        before = ["%0", *(f"%after{k}" for k in range(len(stages) - 1))]
        codes = ", ".join(f"[ %code{k}, {block} ]" for k, block in enumerate(before))
        lines += ["  ret i32 0", "failed:", f"  %code = phi i32 {codes}"]
        lines.append(f"  call void {symbol(f'{prefix}report')}(i32 %code, ptr %values)")
        body = "\n".join([*lines, "  ret i32 %code"])
        return f"define i32 {symbol(name)}({', '.join(params)}) nounwind {{\n{body}\n}}\n"

    def _tensors(self, type_: str) -> list[Parameter]:
        """The parameters with a tensor of the C type ``type_`` for each buffer."""
        given = self.parameters()[: len(self.func.params)]
        return [
            p if p.held or var not in self.func.buffer_map else Parameter(p.name, f"const {type_} *", "ptr")
            for p, var in zip(given, self.func.params)
        ]

    def prototype(self, tensor: str | None) -> str:
        """The declarations; with one that takes tensors of the C type ``tensor``, if given."""
        result = [self.result] if self.result is not None else []
        params = [*(p for p in self.parameters() if not p.held), *result]
        notes = "".join(f" *   {p.name}: {p.note}\n" for p in params if p.note)
        about = f"/* {self.symbol}: 0, or the number of a run-time error.\n{notes} */\n"
        text = about + _declared(self.symbol, params)
        if tensor is None:
            return text
        about = "/* The same of tensors, which give the sizes; their types, shapes and strides are checked. */\n"
        return (
            f"{text}{about}{_declared(self.by_tensors, [*(p for p in self._tensors(tensor) if not p.held), *result])}"
            f"{xla.PROTOTYPE.format(self.by_xla) if self.by_xla else ''}"
        )


def _declared(name: str, params: list[Parameter]) -> str:
    return f"int32_t {name}({', '.join(p.declared for p in params) or 'void'});\n"


def c_scalar(dtype: DType) -> str:
    """The C type in which a number of type ``dtype`` is passed."""
    if dtype.is_handle:
        return "void *"
    if dtype.code == "float" and dtype.bits > 16:
        return {32: "float", 64: "double"}[dtype.bits]
    bits = max(8, dtype.bits)
    return f"int{bits}_t" if dtype.code == "int" else f"uint{bits}_t"  # the small floats as their bits


def _llvm_type(dtype: DType) -> str:
    return "i16" if memory_element(dtype) == "half" else memory_element(dtype)


def _passed(type_: str, c_type: str) -> str:
    """A parameter's type in the C calling convention: the caller extends small integers to 32 bits."""
    if type_ in ("i8", "i16"):
        return f"{type_} {'signext' if c_type.startswith('int') else 'zeroext'}"
    return type_


def exported(
    functions: Mapping[str, Any],
    stem: str,
    external: frozenset[str] = frozenset(),
    defined: tuple[str, ...] = (),
    checked: bool = False,
) -> list[Function]:
    """The functions of a module under their C symbols, in a file called ``stem`` that has ``defined`` besides.

    A function has its own name; ``main`` has the file's. Where that is a name of C, C++, the C library or ``external``,
    the functions that the module calls, the name of the file stands before it. ``checked``: beside them are those that take
    tensors. Raises ``BuildError`` if it is still
    taken, or the same for two.
    """
    found: dict[str, Function | None] = {}

    def take(wanted: str, function: Function | None) -> None:
        if wanted in found:
            raise BuildError(f"two functions would be called {wanted} in C; {_RENAME}")
        if _is_taken(wanted) or wanted in external:
            raise BuildError(
                f"{wanted} is a name of C, of its library, or of a function that the module calls; {_RENAME}"
            )
        found[wanted] = function

    for name in defined:
        take(name, None)
    for name, function in functions.items():
        own = identifier(function.func.attrs.get("global_symbol", name))
        at = stem if own == "main" else own
        at = f"{stem}_{own}" if _is_taken(at) or at in external else at
        made = Function(name, at, function.func, function.written)
        take(at, made)
        for name in (made.by_tensors, made.by_xla) if checked else ():
            if name:
                take(name, None)
    return [function for function in found.values() if function is not None]


_RENAME = 'give the function another name with T.func_attr({"global_symbol": …}), or the file'


def _is_taken(name: str) -> bool:
    """Whether a C program has ``name`` without us: a word of C or C++, or a symbol of the C library."""
    return name == "main" or is_reserved(name) or any(_has(library, name) for library in _c_library())


@functools.cache
def _c_library() -> list[ctypes.CDLL]:
    """The C library and that of mathematics; what this process has, where they have other names."""
    found = []
    for name in ("libc.so.6", "libm.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except OSError:
            found.append(ctypes.CDLL(None))
    return found


def _has(library: ctypes.CDLL, name: str) -> bool:
    try:
        library[name]
    except AttributeError:
        return False
    return True
