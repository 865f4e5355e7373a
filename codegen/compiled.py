"""A compiled program: machine code, and the metadata of a call. It can be cached under a key and loaded again without
lowering or code generation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tir.function import IRModule, PrimFunc

from . import disk
from .calls import signature, stub
from .llvm.compile import Machine, object_codes, object_key
from .llvm.cpu_features import Needs
from .llvm.pieces import pieces


@dataclass(frozen=True)
class Emitted:
    """A program on its way to machine code: lowered, then as LLVM assembly."""

    lowered: IRModule
    text: str


class Emission:
    """A lowered program and its LLVM assembly: made at the first call, and cached until :meth:`forget`."""

    def __init__(self, make: Callable[[], Emitted], made: Emitted | None = None):
        self._make, self._made = make, made

    def __call__(self) -> Emitted:
        """What ``make`` gave."""
        made = self._made  # of several threads that ask, each has an answer
        if made is None:
            made = self._made = self._make()
        return made

    def forget(self) -> None:
        """Empty the cache: the next call makes both again."""
        self._made = None


@dataclass(frozen=True)
class Compiled:
    """``code``: objects that are loaded together. ``functions``: each one's signature (a function without a body) and the positions of parameters it may write.

    ``messages``, ``packed`` and ``parallel`` are as in :class:`codegen.llvm.generator.Program`. ``emit`` gives what was
    compiled, computed if the code came from the cache, or if it was forgotten.
    """

    code: tuple[bytes, ...]
    functions: dict[str, tuple[PrimFunc, frozenset[int]]]
    messages: list[str]
    packed: list[dict[str, Any]]
    parallel: bool
    machine: Machine
    emit: Emission

    @property
    def needs(self) -> Needs:
        """What a processor must have to run it."""
        return Needs.of(self.machine)

    @staticmethod
    def of(emit: Callable[[], tuple[Emitted, Any]], machine: Machine, source: IRModule) -> Compiled:
        """Compile what ``emit`` gives; with it comes the code generator's metadata. The ``source``, which is shorter than what it was
        lowered to, determines what functions write."""
        emitted, program = emit()
        sources = dict(source.items())
        functions = {name: signature(f, sources.get(name)) for name, f in emitted.lowered.items()}
        code = object_codes(emitted.text, machine)
        return Compiled(
            code,
            functions,
            program.messages,
            program.packed,
            program.parallel,
            machine,
            Emission(lambda: emit()[0], emitted),
        )


def keep(key: str, source: IRModule, made: Compiled) -> None:
    """Cache the metadata of ``made`` under ``key``; its code is in the cache of objects.

    Only if the signatures are those of ``source``, since they are not stored.
    """
    path = disk.place(key, ".program")
    if path is None or list(source) != list(made.functions):
        return
    if not all(_same_signature(source[name], f) for name, (f, _) in made.functions.items()):
        return
    about = {
        "objects": [object_key(piece, made.machine) for piece in pieces(made.emit().text)],
        "written": {name: sorted(written) for name, (_, written) in made.functions.items()},
        "messages": made.messages,
        "packed": made.packed,
        "parallel": made.parallel,
    }
    disk.write(path, json.dumps(about).encode())


def find(key: str, source: IRModule, machine: Machine, emit: Callable[[], tuple[Emitted, Any]]) -> Compiled | None:
    """The cached program for ``key`` and ``source``; None if any part is missing or damaged."""
    path = disk.place(key, ".program")
    data = None if path is None else disk.read(path)
    if data is None:
        return None
    about = json.loads(data)
    code = tuple(filter(None, map(_object, about["objects"])))
    if len(code) < len(about["objects"]):
        return None
    functions = {name: (stub(source[name]), frozenset(at)) for name, at in about["written"].items()}
    return Compiled(
        code, functions, about["messages"], about["packed"], about["parallel"], machine, Emission(lambda: emit()[0])
    )


def _object(key: str) -> bytes | None:
    place = disk.place(key, ".o")
    return None if place is None else disk.read(place, warn=False)  # the compiler warns when it compiles it again


def _same_signature(a: PrimFunc, b: PrimFunc) -> bool:
    def parts(f: PrimFunc) -> list[Any]:
        return [*f.params, *(f.buffer_map.get(p) for p in f.params)]

    return (
        len(a.params) == len(b.params)
        and all(x is y for x, y in zip(parts(a), parts(b)))
        and a.ret_type == b.ret_type
        and a.attrs == b.attrs
    )
