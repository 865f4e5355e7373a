"""Which memory a kernel writes: the rest is const, and is not copied back."""

from __future__ import annotations

from tir.expr import BufferLoad, Call, IntImm, Var
from tir.function import PrimFunc
from tir.op import OPS
from tir.stmt import BufferStore
from tir.visit import walk


def written_pointers(func: PrimFunc) -> set[Var]:
    """The pointer variables through which ``func`` may write."""
    found: set[Var] = set()
    reading: set[int] = set()  # ids of pointer expressions that are arguments only read
    for node in walk(func.body):
        if isinstance(node, BufferStore):
            found.add(node.buffer.data)
        if not isinstance(node, Call) or id(node) in reading:
            continue
        op = OPS.get(node.op)
        only_read = [] if op is None else [k for k in range(len(node.args)) if "write" not in op.accesses(k)]
        reading.update(id(node.args[k]) for k in only_read if isinstance(node.args[k], Call))
        if node.op == "tvm_access_ptr":
            mask = node.args[4] if len(node.args) > 4 else None
            if not isinstance(mask, IntImm) or mask.value & 2:
                found.add(list(node.args)[1])
            continue
        for k, arg in enumerate(node.args):
            if k in only_read:
                continue
            if isinstance(arg, Var) and arg.dtype.is_handle:
                found.add(arg)
            elif node.op == "address_of" and isinstance(arg, BufferLoad):
                found.add(arg.buffer.data)
    return found
