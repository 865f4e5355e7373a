"""Splits pipelined copies to shared memory in two: a fetch into registers, and a store from them."""

from __future__ import annotations

from typing import Any

from ..analysis.block_regions import with_regions
from ..annotations import STAGE, THROUGH_REGISTERS, goes_through_registers, is_through_registers
from ..buffer import Buffer, decl_buffer
from ..errors import BuildError
from ..expr import TRUE, BufferLoad, IntImm, cast, const, is_const
from ..function import PrimFunc
from ..node import frozendict
from ..stmt import Block, BlockRealize, BufferStore, For, SeqStmt, Stmt, seq
from ..visit import in_copies_of, rewrite_statements, substitute, walk
from .passes import func_pass


class _Manifest:
    def __init__(self, name: str):
        self.name = name

    def loop(self, s: Any) -> For | None:
        """A pipelined loop with the copies that are statements of its body split."""
        if not isinstance(s, For) or STAGE not in s.annotations:
            return None
        wrappers: list[BlockRealize] = []
        body: Any = s.body
        while isinstance(body, BlockRealize) and not body.block.iter_vars and is_const(body.predicate, 1):
            wrappers.append(body)
            body = body.block.body
        made: list[Stmt] = []
        registers: list[Buffer] = []
        for part in body.stmts if isinstance(body, SeqStmt) else (body,):
            copy = _copy_of(part)
            if copy is None:
                made.append(part)
                continue
            fetch, put, own = self.parted(part, copy)
            made += [fetch, put]
            registers.append(own)
        if not registers:
            return None
        inner: Stmt = seq(made)
        if wrappers:
            block = wrappers[-1].block
            inner = wrappers[-1].replace(
                block=block.replace(body=inner, alloc_buffers=(*block.alloc_buffers, *registers))
            )
            for w in reversed(wrappers[:-1]):
                inner = w.replace(block=w.block.replace(body=inner))
        else:
            block = Block((), (), (), f"{registers[0].name}_scope", inner, None, tuple(registers))
            inner = BlockRealize((), TRUE, with_regions(block))
        return s.replace(body=inner)

    def parted(self, part: Stmt, copy: BlockRealize) -> tuple[Stmt, Stmt, Buffer]:
        """The fetch into registers, the store from there, and the registers."""
        loops: list[For] = []
        at: Any = part
        while isinstance(at, For):
            loops.append(at)
            at = at.body
        store = copy.block.body
        steps = [f for f in loops if not f.thread]
        if (
            at is not copy
            or not isinstance(store, BufferStore)
            or copy.block.init is not None
            or any(not isinstance(f.extent, IntImm) for f in steps)
        ):
            raise BuildError(
                f"{self.name}: block `{copy.block.name}` asks to go through registers ({THROUGH_REGISTERS}), and is not one store in "
                "loops of constant extent that hold nothing else"
            )
        values = {v.var: cast(v.var.dtype, e) for v, e in zip(copy.block.iter_vars, copy.iter_values)}
        own = decl_buffer(
            [f.extent for f in steps] or [const(1)], store.buffer.dtype, f"{store.buffer.name}_local", scope="local"
        )
        index = tuple(f.loop_var - f.min for f in steps) or (const(0),)
        notes = {k: v for k, v in copy.block.annotations.items() if not is_through_registers(k)}
        place = tuple(substitute(i, values) for i in store.indices)
        parts = []
        for name, body, kept in (
            (f"{copy.block.name}_local", BufferStore(own, substitute(store.value, values), index), {}),
            (copy.block.name, BufferStore(store.buffer, BufferLoad(own, index), place), notes),
        ):
            block = with_regions(Block((), (), (), name, body, None)).replace(annotations=frozendict(kept))
            made: Stmt = BlockRealize((), copy.predicate, block)
            parts.append(in_copies_of(loops, made))
        return parts[0], parts[1], own


def _copy_of(part: Stmt) -> BlockRealize | None:
    return next((n for n in walk(part) if isinstance(n, BlockRealize) and goes_through_registers(n.block)), None)


@func_pass
def manifest_shared_memory_local_stage(func: PrimFunc) -> PrimFunc:
    """A block annotated ``manifest_shared_memory_local_stage`` fetches into registers, and stores from there.

    The two are separate statements of the pipelined loop, so that other work can run between them; outside such a loop
    nothing changes. Raises ``BuildError`` if the block is more than one store.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     S = T.alloc_buffer((8,), "float32", scope="shared")
    ...     for i in T.serial(8, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}):
    ...         with T.block("S"):
    ...             vi = T.axis.spatial(8, i)
    ...             T.block_attr({"manifest_shared_memory_local_stage": 1})
    ...             S[vi] = A[vi]
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = S[vi]
    ... ''')
    >>> tir.transform.manifest_shared_memory_local_stage(f).body
    with T.block("root"):
        T.reads()
        T.writes()
        S = T.alloc_buffer((8,), "float32", scope="shared")
        for i in T.serial(8, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}):
            with T.block("S_local_scope"):
                T.reads(A[i], S[i])
                T.writes(S[i], B[i])
                S_local = T.alloc_buffer((1,), "float32", scope="local")
                with T.block("S_local"):
                    T.reads(A[i])
                    T.writes(S_local[0])
                    S_local[0] = A[i]
                with T.block("S"):
                    T.reads(S_local[0])
                    T.writes(S[i])
                    S[i] = S_local[0]
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    T.reads(S[vi])
                    T.writes(B[vi])
                    B[vi] = S[vi]
    """
    if not any(isinstance(n, Block) and goes_through_registers(n) for n in walk(func.body)):
        return func
    return func.with_body(rewrite_statements(func.body, _Manifest(func.name).loop))
