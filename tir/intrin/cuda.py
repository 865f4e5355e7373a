"""NVIDIA tensor cores: wmma, and mma.sync with ldmatrix, under the names that TVM's users know.

A register holds ``e = 32 / bits`` elements. With ``g = lane // 4`` and ``t = lane % 4`` (PTX's figures, one line): operand
A holds row g (+8), columns e t … of each run of 4 e; operand B the same with rows and columns of B's transpose; the
accumulator row g (+8), columns 2 t, 2 t + 1 of each run of 8. A warp's tile is 16 x 16 x 8 e: two instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import DType
from ..expr import Var
from .tensor_intrin import TensorIntrin, parsed

_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "s8": "int8", "i8": "int8",
    "s32": "int32", "i32": "int32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip
_PTX = {
    "f16": "fp16", "bf16": "bf16", "tf32": "tf32", "i8": "int8", "e4m3": "e4m3", "e5m2": "e5m2", "f32": "fp32",
    "i32": "int32",
}  # fmt: skip
_SCOPES = {"shared": "shared", "shared_dyn": "shared.dyn", "global": "global"}


def _buffer(name: str, rows: int, columns: int, dtype: str, scope: str, strides: str = "", factor: int = 16) -> str:
    extra = f", strides=[{strides}]" if strides else ""
    return (
        f'    {name} = T.match_buffer({name.lower()}, ({rows}, {columns}), "{dtype}", align=64, '
        f'offset_factor={factor}, scope="{scope}"{extra})\n'
    )


_STRIDES = "    {0}1 = T.int32()\n    {0}0 = T.int32()\n"


def _zero(dtype: str) -> str:
    return f"T.{dtype}(0)"


def _widening(dtype: str, total: str) -> Callable[[str], str]:
    """An operand of ``dtype`` in the type of the sums."""
    return (lambda x: x) if dtype == total else (lambda x: f'T.cast({x}, "{total}")')


# ---------------------------------------------------------------- wmma


def _number(name: str, stride: str, rows: int, columns: int) -> str:
    """The number of the fragment of a buffer's tile: tiles are numbered row-major in the whole buffer."""
    return (
        f"{name}.elem_offset // {stride} // {rows} * ({stride} // {columns}) "
        f"+ {name}.elem_offset % {stride} // {columns}"
    )


def _wmma_copy(rows: int, columns: int, dtype: str, source: str, target: str, call: str) -> tuple[Any, Any]:
    """A copy of A in one scope to C in another, by ``call``."""
    buffers = (
        _STRIDES.format("s")
        + _STRIDES.format("d")
        + _buffer("A", rows, columns, dtype, source, "s1, s0")
        + _buffer("C", rows, columns, dtype, target, "d1, d0")
    )
    desc = f"""        for i, j in T.grid({rows}, {columns}):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
"""
    region = f"[0:{rows}, 0:{columns}]"
    return parsed("a c", buffers, f"A{region}", f"C{region}", desc, f"        T.evaluate({call})\n")


def _wmma_load(shape: tuple[int, int, int], kind: str, operand: str, trans: bool, scope: str) -> tuple[Any, Any]:
    m, n, k = shape
    rows, columns = (m, k) if operand == "a" else (k, n)
    if trans:
        rows, columns = columns, rows
    layout = "col_major" if trans else "row_major"
    call = f"""T.tvm_load_matrix_sync(C.data, {m}, {n}, {k}, {_number("C", "d1", rows, columns)},
            A.access_ptr("r"), s1, "{layout}", dtype="handle")"""
    return _wmma_copy(rows, columns, _DTYPES[kind], scope, f"wmma.matrix_{operand}", call)


def _wmma_store(shape: tuple[int, int, int], kind: str, scope: str) -> tuple[Any, Any]:
    m, n, k = shape
    call = f"""T.tvm_store_matrix_sync(A.data, {m}, {n}, {k}, {_number("A", "s1", m, n)},
            C.access_ptr("w"), d1, "row_major", dtype="handle")"""
    return _wmma_copy(m, n, _DTYPES[kind], "wmma.accumulator", scope, call)


def _wmma_fill(shape: tuple[int, int, int], kind: str) -> tuple[Any, Any]:
    m, n, k = shape
    dtype = _DTYPES[kind]
    desc = f"""        for i, j in T.grid({m}, {n}):
            with T.block("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = {_zero(dtype)}
"""
    impl = f"""        T.evaluate(T.tvm_fill_fragment(C.data, {m}, {n}, {k}, {_number("C", "d1", m, n)}, {_zero(dtype)}, dtype="handle"))
"""
    buffers = _STRIDES.format("d") + _buffer("C", m, n, dtype, "wmma.accumulator", "d1, d0")
    return parsed("c", buffers, "", f"C[0:{m}, 0:{n}]", desc, impl)


def _wmma_sync(shape: tuple[int, int, int], kind: str, out: str, trans_b: bool) -> tuple[Any, Any]:
    m, n, k = shape
    dtype, total = _DTYPES[kind], _DTYPES[out]
    rows, columns = (n, k) if trans_b else (k, n)
    buffers = (
        _STRIDES.format("a")
        + _STRIDES.format("b")
        + _STRIDES.format("c")
        + _buffer("A", m, k, dtype, "wmma.matrix_a", "a1, a0")
        + _buffer("B", rows, columns, dtype, "wmma.matrix_b", "b1, b0")
        + _buffer("C", m, n, total, "wmma.accumulator", "c1, c0")
    )
    wide = _widening(dtype, total)
    desc = f"""        for i, j, k in T.grid({m}, {n}, {k}):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + {wide("A[vi, vk]")} * {wide("B[vj, vk]" if trans_b else "B[vk, vj]")}
"""
    number = _number("C", "c1", m, n)
    impl = f"""        T.evaluate(T.tvm_mma_sync(C.data, {number}, A.data, {_number("A", "a1", m, k)},
            B.data, {_number("B", "b1", rows, columns)}, C.data, {number}, dtype="handle"))
"""
    sums = f"C[0:{m}, 0:{n}]"
    return parsed("a b c", buffers, f"{sums}, A[0:{m}, 0:{k}], B[0:{rows}, 0:{columns}]", sums, desc, impl)


_WMMA = {
    "f16": ((16, 16, 16), ("f32", "f16")),
    "bf16": ((16, 16, 16), ("f32",)),
    "s8": ((16, 16, 16), ("s32",)),
    "tf32": ((16, 16, 8), ("f32",)),
}


def _register_wmma() -> None:
    lazy = TensorIntrin.register_lazy
    for kind, (shape, outs) in _WMMA.items():
        size = "x".join(map(str, shape))
        for scope, place in list(_SCOPES.items())[:2]:
            for operand in "ab":
                for trans in (False, True):
                    name = f"wmma_load_{size}_{kind}_{operand}{'_trans' * trans}_{scope}"
                    lazy(name, lambda a=(shape, kind, operand, trans, place): _wmma_load(*a))
        for out in outs:
            for trans in (False, True):
                name = f"wmma_sync_{size}_{kind}{kind}{out}{'_trans' * trans}"
                lazy(name, lambda a=(shape, kind, out, trans): _wmma_sync(*a))
    for shape, outs in (((16, 16, 16), ("f32", "f16", "s32")), ((16, 16, 8), ("f32",))):
        size = "x".join(map(str, shape))
        for out in outs:
            lazy(f"wmma_fill_{size}_{out}", lambda a=(shape, out): _wmma_fill(*a))
            for scope, place in _SCOPES.items():
                lazy(f"wmma_store_{size}_{out}_{scope}", lambda a=(shape, out, place): _wmma_store(*a))


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool = False
) -> dict[str, str]:
    """Names for a wmma matmul: keys ``init``, ``load_a``, ``load_b``, ``compute``, ``store``.

    ``load_scope``: "shared" or "shared.dyn"; ``store_scope`` also "global"; the dtypes are the dialect's. Raises
    ``ValueError`` for a combination that tensor cores do not support.

    >>> get_wmma_intrin_group("shared", "shared", "float16", "float32")["compute"]
    'wmma_sync_16x16x16_f16f16f32'
    """
    kind = {"float16": "f16", "bfloat16": "bf16", "int8": "s8", "float32": "tf32"}.get(in_dtype, "")
    out = {"float32": "f32", "float16": "f16", "int32": "s32"}.get(out_dtype, "")
    if kind not in _WMMA or out not in _WMMA[kind][1]:
        raise ValueError(f"wmma has no product for {in_dtype} into {out_dtype}")
    load, store, size = load_scope.replace(".", "_"), store_scope.replace(".", "_"), "x".join(map(str, _WMMA[kind][0]))
    trans = "_trans" * trans_b
    return {
        "init": f"wmma_fill_{size}_{out}",
        "load_a": f"wmma_load_{size}_{kind}_a_{load}",
        "load_b": f"wmma_load_{size}_{kind}_b{trans}_{load}",
        "compute": f"wmma_sync_{size}_{kind}{kind}{out}{trans}",
        "store": f"wmma_store_{size}_{out}_{store}",
    }


# ---------------------------------------------------------------- mma.sync


def _per_register(kind: str) -> int:
    return 32 // DType(_DTYPES[kind]).bits


def layout_a(i: Any, j: Any, e: int = 2) -> tuple[Any, Any]:
    """(lane, element of the lane) that holds row ``i``, column ``j`` of operand A; with e = 2 also of the accumulator.

    >>> layout_a(9, 3)
    (5, 3)
    """
    return 4 * (i % 8) + j % (4 * e) // e, 2 * e * (j // (4 * e)) + e * (i // 8) + j % e


def layout_b(k: Any, j: Any, e: int = 2) -> tuple[Any, Any]:
    """(lane, element of the lane) that holds row ``k``, column ``j`` of operand B, 8 e x 16."""
    return 4 * (j % 8) + k % (4 * e) // e, 2 * e * (j // 8) + e * (k // (4 * e)) + k % e


def _written(layout: Callable[[Any, Any, int], tuple[Any, Any]], i: str, j: str, e: int) -> str:
    """The indices of a layout, of variables of these names."""
    return ", ".join(map(repr, layout(Var(i), Var(j), e)))


def _ldmatrix(kind: str, operand: str, trans: bool, scope: str) -> tuple[Any, Any]:
    """A tile of 16 rows and 8 e columns (``trans``: of the operand's transpose) from shared memory to a warp."""
    e, dtype = _per_register(kind), _DTYPES[kind]
    depth, held = 8 * e, 4 * e
    along_k = (operand == "a") != trans  # whether rows of shared memory run along k
    rows, columns = (16, depth) if along_k else (depth, 16)
    at = _written(layout_a if operand == "a" else layout_b, *(("vj", "vi") if trans else ("vi", "vj")), e)
    buffers = (
        _STRIDES.format("s")
        + f'    S = T.match_buffer(shared, ({rows}, {columns}), "{dtype}", align=64, offset_factor={4 * e}, '
        f'scope="{scope}", strides=[s1, s0])\n'
        + f'    W = T.match_buffer(warp, (32, {held}), "{dtype}", align=64, offset_factor={held}, scope="warp")\n'
    )
    desc = f"""        for i, j in T.grid({rows}, {columns}):
            with T.block("shared_warp"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(S[vi, vj])
                T.writes(W[{at}])
                W[{at}] = S[vi, vj]
"""
    if along_k == (operand == "a"):  # the second matrix lies below the first
        row, column = "tx % 16", f"{4 * e} * (tx // 16)"
    else:
        row, column = "tx // 16 * 8 + tx % 8", f"{4 * e} * (tx % 16 // 8)"
    impl = f"""        for tx in T.thread_binding(0, 32, "threadIdx.x"):
            T.evaluate(T.ptx_ldmatrix({not along_k}, 4, ".b16", W.data, W.elem_offset + {held} * tx,
                S.access_ptr("r"), s1 * ({row}) + {column}, dtype="{dtype}"))
"""
    return parsed("warp shared", buffers, f"S[0:{rows}, 0:{columns}]", f"W[0:32, 0:{held}]", desc, impl)


def _mma(kind: str, out: str) -> tuple[Any, Any]:
    e, dtype, total = _per_register(kind), _DTYPES[kind], _DTYPES[out]
    depth, held = 8 * e, 4 * e
    buffers = (
        _buffer("A", 32, held, dtype, "warp", factor=held)
        + _buffer("B", 32, held, dtype, "warp", factor=held)
        + _buffer("C", 32, 8, total, "warp", factor=8)
    )
    wide = _widening(dtype, total)
    a, b, c = (
        _written(*at) for at in ((layout_a, "vi", "vk", e), (layout_b, "vk", "vj", e), (layout_a, "vi", "vj", 2))
    )
    desc = f"""        for i, j, k in T.grid(16, 16, {depth}):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[{c}], A[{a}], B[{b}])
                T.writes(C[{c}])
                C[{c}] = C[{c}] + {wide(f"A[{a}]")} * {wide(f"B[{b}]")}
"""
    types = f'"{_PTX[kind]}", "{_PTX[kind]}", "{_PTX[out]}"'
    calls = "".join(
        f"""            T.evaluate(T.ptx_mma("m16n8k{depth}", "row", "col", {types}, A.data, A.elem_offset + tx * {held},
                B.data, B.elem_offset + tx * {held} + {half * 2 * e}, C.data, C.elem_offset + tx * 8 + {half * 4}, False,
                dtype="{total}"))
"""
        for half in (0, 1)
    )
    impl = '        for tx in T.thread_binding(0, 32, "threadIdx.x"):\n' + calls
    reads = f"C[0:32, 0:8], A[0:32, 0:{held}], B[0:32, 0:{held}]"
    return parsed("a b c", buffers, reads, "C[0:32, 0:8]", desc, impl)


def _mma_fill(kind: str) -> tuple[Any, Any]:
    dtype, at = _DTYPES[kind], _written(layout_a, "vi", "vj", 2)
    desc = f"""        for i, j in T.grid(16, 16):
            with T.block("C_warp"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[{at}])
                C[{at}] = {_zero(dtype)}
"""
    impl = f"""        for tx in T.thread_binding(0, 32, "threadIdx.x"):
            T.evaluate(T.mma_fill(8, C.data, C.elem_offset + tx * 8, dtype="{dtype}"))
"""
    return parsed("c", _buffer("C", 32, 8, dtype, "warp", factor=8), "", "C[0:32, 0:8]", desc, impl)


def _mma_store(kind: str, scope: str) -> tuple[Any, Any]:
    dtype, at = _DTYPES[kind], _written(layout_a, "vi", "vj", 2)
    buffers = (
        _STRIDES.format("d")
        + _buffer("A", 32, 8, dtype, "warp", factor=8)
        + _buffer("C", 16, 16, dtype, scope, "d1, d0", factor=1)
    )
    desc = f"""        for i, j in T.grid(16, 16):
            with T.block("C_warp"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[{at}])
                T.writes(C[vi, vj])
                C[vi, vj] = A[{at}]
"""
    impl = f"""        for tx in T.thread_binding(0, 32, "threadIdx.x"):
            T.evaluate(T.mma_store(16, 16, C.access_ptr("w"), A.data, A.elem_offset + tx * 8, d1, dtype="{dtype}"))
"""
    return parsed("a c", buffers, "A[0:32, 0:8]", "C[0:16, 0:16]", desc, impl)


_MMA = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "i8": ("i32",), "e4m3": ("f32",), "e5m2": ("f32",)}
_BY_TRANSPOSE = ("f16", "bf16")  # ldmatrix transposes elements of 16 bits only


def _register_mma() -> None:
    lazy = TensorIntrin.register_lazy
    for kind, outs in _MMA.items():
        for out in outs:
            for trans in (
                "",
                "_trans_a",
                "_trans_b",
                "_trans_a_trans_b",
            ):  # ldmatrix handles the layout of the operands
                lazy(f"mma_{kind}{kind}{out}{trans}", lambda a=(kind, out): _mma(*a))
        for operand in "ab":
            for trans in (False, True):
                if kind not in _BY_TRANSPOSE and trans != (operand == "b"):
                    continue
                for scope, place in (("", "shared"), ("_dyn", "shared.dyn")):
                    name = f"mma_ldmatrix_{kind}_{operand}{'_trans' * trans}{scope}"
                    lazy(name, lambda a=(kind, operand, trans, place): _ldmatrix(*a))
    for out in ("f32", "f16", "i32"):
        lazy(f"mma_fill_16x16_{out}", lambda a=out: _mma_fill(a))
        for scope, place in _SCOPES.items():
            for simple in ("", "simple_"):
                lazy(f"mma_store_16x16_{out}_{scope}_{simple}", lambda a=(out, place): _mma_store(*a))


def get_mma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_a: bool = False, trans_b: bool = False
) -> dict[str, Any]:
    """Names for a matmul by mma.sync: keys ``init``, ``load_a``, ``load_b``, ``compute``, ``store``; and ``layout_a``,
    ``layout_b``, ``layout_c``: functions (row, column) -> (lane, element) of the operands as they lie in memory, and
    ``micro_kernel``, the tile (m, n, k). Raises ``ValueError`` for a combination that tensor cores do not support.

    >>> get_mma_intrin_group("shared", "global", "float16", "float32", trans_b=True)["load_b"]
    'mma_ldmatrix_f16_b_trans'
    """
    kinds = {
        "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "int8": "i8", "float8_e4m3fn": "e4m3",
        "float8_e5m2": "e5m2",
    }  # fmt: skip
    kind = kinds.get(in_dtype, "")
    out = {"float32": "f32", "float16": "f16", "int32": "i32"}.get(out_dtype, "")
    if out not in _MMA.get(kind, ()):
        raise ValueError(f"mma has no product of {in_dtype} into {out_dtype}")
    if kind not in _BY_TRANSPOSE and (trans_a or not trans_b):
        raise ValueError(f"mma of {in_dtype} takes A by rows and B transposed: trans_a=False, trans_b=True")
    e, dyn = _per_register(kind), "_dyn" * load_scope.endswith(".dyn")
    return {
        "init": f"mma_fill_16x16_{out}",
        "load_a": f"mma_ldmatrix_{kind}_a{'_trans' * trans_a}{dyn}",
        "load_b": f"mma_ldmatrix_{kind}_b{'_trans' * trans_b}{dyn}",
        "compute": f"mma_{kind}{kind}{out}{'_trans_b' * trans_b}",
        "store": f"mma_store_16x16_{out}_{store_scope.replace('.', '_')}_",
        "layout_a": (lambda i, j: layout_a(j, i, e)) if trans_a else (lambda i, j: layout_a(i, j, e)),
        "layout_b": (lambda i, j: layout_b(j, i, e)) if trans_b else (lambda i, j: layout_b(i, j, e)),
        "layout_c": lambda i, j: layout_a(i, j, 2),
        "micro_kernel": (16, 16, 8 * e),
    }


_register_wmma()
_register_mma()


def __getattr__(constant: str) -> str:
    """The names of intrinsics as constants, as TVM has them.

    >>> from tir.intrin.cuda import LDMATRIX_f16_A_DYN_INTRIN, WMMA_LOAD_16x16x16_F16_A_INTRIN
    >>> LDMATRIX_f16_A_DYN_INTRIN, WMMA_LOAD_16x16x16_F16_A_INTRIN
    ('mma_ldmatrix_f16_a_dyn', 'wmma_load_16x16x16_f16_a_shared')
    """
    head, intrin, tail = constant.partition("_INTRIN")
    name = head.lower()
    if name.startswith("ldmatrix"):
        name = f"mma_{name}"
    elif name.startswith("wmma_load"):
        name = f"{name.removesuffix('_dyn')}_shared{'_dyn' * name.endswith('_dyn')}"
    elif name.startswith("mma_store"):
        name = f"{name}_{'simple_' * (tail == '_SIMPLE')}"
    if not intrin or name not in TensorIntrin.list():
        raise AttributeError(f"module {__name__!r} has no attribute {constant!r}")
    return name
