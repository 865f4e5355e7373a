"""Splits kernels from the host function that launches them."""

from __future__ import annotations

from typing import Any

from ..aliases import sharing
from ..arith import Analyzer
from ..buffer import Buffer
from ..errors import BuildError
from ..expr import Call, Expr, IntImm, StringImm, Var, all_of, constant
from ..function import IRModule, PrimFunc
from ..launches import bytes_of, is_launch
from ..levels import SHARED_DYN, ends_with_launch
from ..names import claimed
from ..node import frozendict
from ..op import call
from ..stmt import NOP, Allocate, AllocateConst, AttrStmt, BufferStore, DeclBuffer, Evaluate, IfThenElse, Stmt
from ..target import CPUS, Target
from ..visit import free_vars, substitute, walk
from .host_calls import with_host_calls_inlined, without_unused_views
from .passes import module_pass
from .thread_axes import axis_order, flat

DYNAMIC = "tir.use_dyn_shared_memory"
CLUSTER = "tir.cluster"  # the attribute of a function that says how many blocks of its kernels are a cluster


class _Splitter:
    def __init__(self, func: PrimFunc, name: str, target: Target, taken: set[str]):
        self.func = func
        self.name = name
        self.target = target
        self.taken = taken
        self.kernels: dict[str, PrimFunc] = {}
        self.constants: list[AllocateConst] = []  # around here; each is a part of the kernels that read it

    def visit(self, s: Any) -> Any:
        if is_launch(s):
            return self.kernel(s)
        if isinstance(s, AllocateConst):
            self.constants.append(s)
            body = self.visit(s.body)
            self.constants.pop()
            return body
        if isinstance(s, BufferStore):
            raise BuildError(
                f"{self.name}: `{s!r}` is not in a loop bound to threads, so no kernel runs it; bind a loop around it, "
                "or put default_thread_binding into the pipeline"
            )
        if isinstance(s, Allocate) and ends_with_launch(s.buffer_var.scope):
            raise BuildError(
                f"{self.name}: `{s.buffer_var.name}` in {s.buffer_var.scope} memory is allocated outside the kernels"
            )
        return s.map_statements(self.visit)

    def kernel(self, s: Stmt) -> Stmt:
        if any(isinstance(n, AttrStmt) and is_launch(n) and constant(n.value) == 0 for n in walk(s)):
            return NOP
        name = claimed(f"{self.name}_kernel", self.taken)
        extents: dict[str, Expr] = {}
        shared = 0
        for n in walk(s):
            if isinstance(n, AttrStmt) and is_launch(n):
                extents.setdefault(n.node.thread_tag, n.value)
            elif isinstance(n, Allocate):
                if not ends_with_launch(n.buffer_var.scope):
                    raise BuildError(
                        f"{self.name}: global memory `{n.buffer_var.name}` is allocated inside a kernel; allocate it "
                        "outside the loops bound to threads, or give it the scope local or shared"
                    )
                size = bytes_of(n)
                if n.buffer_var.scope == SHARED_DYN:
                    shared += size
            elif isinstance(n, Call) and n.op == "call_global":
                raise BuildError(
                    f"{self.name}: the kernel calls a function of the module, `{n!r}`. Kernels call those that compute a number from "
                    "numbers, without loops or stores; pass elements instead of pointers, or have what it does in the kernel"
                )
        used = free_vars(s)
        constants = [c for c in self.constants if c.buffer_var in set(used)]
        used = [v for v in used if v not in {c.buffer_var for c in constants}]
        place = {b.data: n for n, b in enumerate(self.func.buffers())}
        handles = sorted((v for v in used if v.dtype.is_handle), key=lambda v: place.get(v, len(place)))
        scalars = [v for v in used if not v.dtype.is_handle]
        params = {v: Var(v.name, v.dtype, v.pointer_dtype, v.scope) for v in (*handles, *scalars)}
        body = s
        for buffer in reversed(_outer_views(s, {*handles, *(c.buffer_var for c in constants)})):
            body = DeclBuffer(buffer, body)
        for allocated in reversed(constants):
            body = allocated.replace(body=body)
        order = sorted(extents, key=axis_order)
        launch = (*order, DYNAMIC) if shared else tuple(order)
        attrs = {
            "global_symbol": name,
            "target": self.target,
            "calling_conv": "device_kernel",
            "tir.kernel_launch_params": launch,
            "tir.noalias": self.func.attrs.get("tir.noalias", True),
        }
        if CLUSTER in self.func.attrs:
            attrs[CLUSTER] = self.func.attrs[CLUSTER]
        body = substitute(body, params)
        self.kernels[name] = PrimFunc(tuple(params.values()), body, attrs=frozendict(attrs))
        sizes = [extents[axis] for axis in order] + ([IntImm(shared)] if shared else [])
        launched = Evaluate(call("tvm_call_packed", StringImm(name), *params, *sizes, dtype="int32"))
        # a grid has at least one block: what may be empty is launched only when it is not
        doubtful = [e > 0 for e in extents.values() if not Analyzer().can_prove(e > 0)]
        return IfThenElse(all_of(doubtful), launched) if doubtful else launched


def _outer_views(root: Any, handles: set[Var]) -> list[Buffer]:
    """Buffers used under ``root`` that view ``handles`` and are declared outside."""
    declared = {n.buffer for n in walk(root) if isinstance(n, DeclBuffer)}
    found = sharing((n for n in walk(root) if isinstance(n, Buffer)), handles)
    return list(dict.fromkeys(b for b in found if b not in declared))


@module_pass
def split_host_device(mod: IRModule, target: Any = "cuda") -> IRModule:
    """Each launch becomes a kernel function ``<name>_kernel``, and a call of it in the host function.

    The kernel has the pointers, then the scalars that it uses as parameters, and the constant arrays that it uses. The call has them as arguments, then the
    extents in the order of ``tir.kernel_launch_params``, the bytes of dynamic shared memory last. Raises ``BuildError``
    for a store outside the kernels and for global memory allocated inside one. A call of another function of the module by a host
    function is replaced by what that one launches. Functions of which the attribute ``target`` is a CPU stay as they are.

    >>> import tir
    >>> f = tir.script.parse('''
    ... @T.prim_func
    ... def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = A[vi] * 2.0
    ... ''')
    >>> lowered = tir.lower(f, target="cuda", upto="lower_intrin_rules")
    >>> list(lowered), list(tir.transform.split_host_device(lowered))
    (['main'], ['main', 'main_kernel'])
    """
    where = Target.of(target)
    taken = set(mod.functions)
    functions: dict[str, PrimFunc] = {}
    hosts: dict[str, PrimFunc] = {}
    for name, func in mod.items():
        own = func.attrs.get("target")
        if func.attrs.get("calling_conv") == "device_kernel" or (own is not None and Target.of(own).kind in CPUS):
            functions[name] = func
            continue
        splitter = _Splitter(func, name, where, taken)
        body = flat(without_unused_views(splitter.visit(func.body)))
        functions[name] = hosts[name] = func.with_body(body).with_attr({"calling_conv": "host", "target": where})
        functions.update(splitter.kernels)
    return mod.replace(functions=frozendict({**functions, **with_host_calls_inlined(hosts)}))
