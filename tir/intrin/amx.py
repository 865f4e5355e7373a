"""AMX: products of bfloat16 or 8-bit matrices, accumulated in tile registers of 16 by 16 sums.

Buffers of tiles are in scope ``amx.tile``: 16 rows of 64 bytes each, one after another. Each row of the right operand
holds groups of 2 (bfloat16) or 4 (bytes) elements that are consecutive along the reduction.
"""

from __future__ import annotations

from typing import Any

from .tensor_intrin import TensorIntrin, parsed

TILE = 16  # rows of a tile, and columns of sums
# left type, right type, sum type, elements per group, kind of product
_KINDS = {
    "bf16": ("bfloat16", "bfloat16", "float32", 2),
    "us": ("uint8", "int8", "int32", 4),
    "ss": ("int8", "int8", "int32", 4),
    "su": ("int8", "uint8", "int32", 4),
    "uu": ("uint8", "uint8", "int32", 4),
}


def _buffer(name: str, shape: str, dtype: str, strides: str = "", scope: str = "amx.tile") -> str:
    laid = (
        f', strides=[{strides}], offset_factor=1, scope="global"' if strides else f', scope="{scope}", offset_factor='
    )
    whole = "" if strides else {"float32": "256", "int32": "256", "bfloat16": "512"}.get(dtype, "1024")
    return f'    {name} = T.match_buffer({name.lower()}, ({shape}), "{dtype}"{laid}{whole})\n'


def _whole(name: str, shape: str) -> str:
    return f"{name}[{', '.join(f'0:{n}' for n in shape.split(', '))}]"


def _copy(dtype: str, group: int, op: str) -> tuple[Any, Any]:
    """Copy memory to a tile (load, stream) or a tile to memory (store): rows of ``16, group`` elements (16 if ``group``
    is 1)."""
    load = op != "store"
    shape, axes = ("16, 16", "vi, vj") if group == 1 else (f"16, 16, {group}", "vi, vj, vk")
    step = {"float32": 4, "int32": 4, "bfloat16": 2}.get(dtype, 1)
    names, kinds = ("i, j", "SS") if group == 1 else ("i, j, k", "SSS")
    memory = "    row = T.int32()\n" + _buffer("A", shape, dtype, "row, 1" if group == 1 else f"row, {group}, 1")
    tile = _buffer("C", shape, dtype)
    source, target = ("A", "C") if load else ("C", "A")
    desc = f"""        for {names} in T.grid({shape}):
            with T.block("copy"):
                {axes} = T.axis.remap("{kinds}", [{names}])
                {target}[{axes}] = {source}[{axes}]
"""
    mode = "r" if load else "w"
    number = f"C.elem_offset // {1024 // step}"
    impl = (
        f'        T.evaluate(T.amx_tile_{op}(C.data, {number}, A.access_ptr("{mode}"), row * {step}, dtype="void"))\n'
    )
    handles, buffers = ("a c", memory + tile) if load else ("c a", tile + memory)
    return parsed(handles, buffers, _whole(source, shape), _whole(target, shape), desc, impl)


def _zero(dtype: str) -> tuple[Any, Any]:
    desc = f"""        for i, j in T.grid(16, 16):
            with T.block("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.{dtype}(0)
"""
    impl = '        T.evaluate(T.amx_tile_zero(C.data, C.elem_offset // 256, dtype="void"))\n'
    return parsed("c", _buffer("C", "16, 16", dtype), "", "C[0:16, 0:16]", desc, impl)


def _dot(kind: str) -> tuple[Any, Any]:
    left, right, out, group = _KINDS[kind]
    shape = f"16, 16, {group}"
    buffers = _buffer("A", shape, left) + _buffer("B", shape, right) + _buffer("C", "16, 16", out)
    desc = f"""        for i, j, k, q in T.grid(16, 16, 16, {group}):
            with T.block("update"):
                vi, vj, vk, vq = T.axis.remap("SSRR", [i, j, k, q])
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk, vq], "{out}") * T.cast(B[vk, vj, vq], "{out}")
"""
    whole = 1024 if group == 4 else 512
    impl = f"""        T.evaluate(T.amx_tile_dot("{kind}", C.data, C.elem_offset // 256,
            A.data, A.elem_offset // {whole}, B.data, B.elem_offset // {whole}, dtype="void"))
"""
    reads = f"C[0:16, 0:16], {_whole('A', shape)}, {_whole('B', shape)}"
    return parsed("a b c", buffers, reads, "C[0:16, 0:16]", desc, impl)


def amx_intrinsics(kind: str) -> dict[str, str]:
    """Names of the intrinsics of a product of tiles: ``load_a``, ``load_b``, ``zero``, ``dot``, ``store``; also
    ``stream_a``, ``stream_b``, loads of data that need not stay in the L1 cache.

    ``kind``: "bf16", or the signedness of two operands of bytes: "us" (left unsigned, right signed), "ss", "su", "uu".

    >>> amx_intrinsics("bf16")["dot"]
    'amx_dot_bf16'
    """
    left, right, out, _ = _KINDS[kind]
    return {
        "load_a": f"amx_load_{left}",
        "load_b": f"amx_load_{right}",
        "stream_a": f"amx_stream_{left}",
        "stream_b": f"amx_stream_{right}",
        "zero": f"amx_zero_{out}",
        "store": f"amx_store_{out}",
        "dot": f"amx_dot_{kind}",
    }


for _dtype, _group in (("bfloat16", 2), ("uint8", 4), ("int8", 4)):
    for _op in ("load", "stream"):
        TensorIntrin.register_lazy(f"amx_{_op}_{_dtype}", lambda d=_dtype, g=_group, o=_op: _copy(d, g, o))
for _dtype in ("float32", "int32"):
    TensorIntrin.register_lazy(f"amx_zero_{_dtype}", lambda d=_dtype: _zero(d))
    TensorIntrin.register_lazy(f"amx_load_{_dtype}", lambda d=_dtype: _copy(d, 1, "load"))
    TensorIntrin.register_lazy(f"amx_store_{_dtype}", lambda d=_dtype: _copy(d, 1, "store"))
for _kind in _KINDS:
    TensorIntrin.register_lazy(f"amx_dot_{_kind}", lambda k=_kind: _dot(k))
