"""What the text of a kernel promises to the compiler about its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tir.aliases import overlapping, parameter_pointers
from tir.analysis.effects import effects
from tir.buffer import Buffer
from tir.expr import And, BufferLoad, Or, Var, choice_parts
from tir.function import PrimFunc
from tir.stmt import IfThenElse
from tir.visit import walk

Arms = tuple[tuple[int, int], ...]  # the branches around an access, outermost first: a choice, and which of its sides


@dataclass(frozen=True)
class Promise:
    """``const``: nothing is written through this pointer. ``restrict``: what it points to is not written at all while the
    kernel runs, so that a load may move across any barrier, and bypass the coherent caches (``ld.global.nc``)."""

    const: bool = False
    restrict: bool = False

    def declares(self, element: str) -> str:
        """The C type of the parameter, of elements of the C type ``element``."""
        return f"{'const ' * self.const}{element}*{' __restrict__' * self.restrict}"


def promises(func: PrimFunc) -> dict[Var, Promise]:
    """The promises about the pointers that the kernel ``func`` has as parameters.

    Only memory that the kernel never writes is restrict. For restrict memory the compiler assumes that a barrier
    changes nothing behind the pointer: it would move loads and stores of written memory across ``__syncthreads()``, past the
    accesses of other threads. A restrict pointer that is only read keeps its loads apart from every store, so no more is needed. A
    pointer that a let or an unknown operator takes counts as written. With ``tir.noalias`` false nothing is restrict.

    Nor is anything restrict where a kernel reads what it writes and has a choice (or reads only-read and written memory in
    different branches): of ``c ? written[i] : only_read[j]`` NVVM makes one load of a selected pointer, also where the
    second load stands before the choice, and by what it knows about that one lets the load bypass the stores.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     tx = T.launch_thread("threadIdx.x", 8)
    ...     B[tx] = A[tx]
    ... ''')
    >>> [promise.declares("float") for promise in promises(f).values()]
    ['const float* __restrict__', 'float*']
    """
    written = effects(func.body).writes
    reads = list(_reads(func.body, ()))
    chooses = any(p in written for p, _ in reads) and any(map(_is_choice, walk(func.body)))
    alone = not (overlapping(func) or chooses)
    found: dict[Var, Promise] = {}
    for pointer in parameter_pointers(func):
        if pointer.dtype.is_handle:
            const = pointer not in written
            found[pointer] = Promise(const, const and alone and not _is_alternative(pointer, reads, written))
    return found


def _is_choice(node: Any) -> bool:
    """Whether ``node`` evaluates one of two sides."""
    if isinstance(node, IfThenElse):
        return node.else_case is not None
    return choice_parts(node) is not None


def _is_alternative(pointer: Var, reads: list[tuple[Var, Arms]], written: frozenset[Var]) -> bool:
    """Whether a read of ``pointer`` and one of written memory are in different branches, neither inside the other's."""
    mine = {arms for p, arms in reads if p is pointer and arms}
    others = {arms for p, arms in reads if p in written and arms}
    return any(a[: len(b)] != b[: len(a)] for a in mine for b in others)


def _reads(node: Any, arms: Arms) -> Iterator[tuple[Var, Arms]]:
    """The pointers that ``node`` loads from or passes on, each with the branches around it."""
    if isinstance(node, Buffer):
        return
    if isinstance(node, BufferLoad):
        yield node.buffer.data, arms
    elif isinstance(node, Var) and node.dtype.is_handle:
        yield node, arms
    always, sides = _parts(node)
    for part in always:
        yield from _reads(part, arms)
    for number, side in enumerate(sides):
        yield from _reads(side, (*arms, (id(node), number)))


def _parts(node: Any) -> tuple[Any, Any]:
    """The children that are evaluated with ``node``, and those of which each is in a branch."""
    if isinstance(node, IfThenElse):
        return (node.condition,), [side for side in (node.then_case, node.else_case) if side is not None]
    if (parts := choice_parts(node)) is not None:
        return parts[:1], parts[1:]
    if isinstance(node, (And, Or)):
        return (node.a,), (node.b,)
    return tuple(node.children()), ()
