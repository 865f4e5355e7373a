"""What is written here for a name of another library: Python, NumPy, numba, Triton, Halide, TVM's other modules.

One table serves each message about a name that is nearly right, whether it is unknown, of the wrong module, or a function
of Python that is given a value of the program; rows with ``()`` are for calls with arguments that do not fit.
"""

from __future__ import annotations

import functools

_TABLE = """
prange: `for i in T.parallel(n)`
pndindex, ndindex, ndrange: `for i, j in T.grid(n, m)`
static_range: `for i in T.unroll(n)`
enumerate, zip: a loop over indices, `for i in range(n)`
jit, njit, numba: `@T.prim_func`, and `tir.build(f, target)`
vectorize, guvectorize: `T.vectorized(n)` for a loop, or sch.vectorize
autotune: `tir.tune(f, target)`
where: `T.if_then_else(condition, a, b)`, or Python's `a if condition else b`
maximum, fmax: `T.max(a, b)`
minimum, fmin: `T.min(a, b)`
clip, clamp: `T.min(T.max(x, low), high)`
absolute, fabs: `T.abs(x)`
arctan: `T.atan(x)`
arctan2: `T.atan2(y, x)`
arcsin: `T.asin(x)`
arccos: `T.acos(x)`
arcsinh: `T.asinh(x)`
arccosh: `T.acosh(x)`
arctanh: `T.atanh(x)`
power: `T.pow(x, y)`
square: `x * x`
reciprocal: `1.0 / x`
mod, remainder: `a % b`
fmod: `T.fmod(a, b)`
floor_divide: `a // b`
cdiv: `T.ceildiv(a, b)`
expit: `T.sigmoid(x)`
astype: `T.Cast("float32", x)`, or x.astype("float32")
sum: a loop that adds to a name, or a block with T.init; on whole tensors `tir.te` and `tir.ops.sum`
mean: a loop that adds to a name, or a block with T.init; on whole tensors `tir.ops.mean`
prod: a loop that multiplies a name, or a block with T.init; on whole tensors `tir.ops.prod`
amax: a loop with T.max, or a block with T.init; on whole tensors `tir.ops.max`
argmax: a loop that keeps the best index in a name; on whole tensors `tir.ops.argmax`
dot: loops with `C[i, j] += A[i, k] * B[k, j]`; on whole tensors `tir.ops.matmul`; on tensor cores sch.tensorize
matmul: loops with `C[i, j] += A[i, k] * B[k, j]`; on whole tensors `tir.ops.matmul`
einsum: loops with `C[i, j] += A[i, k] * B[k, j]`; on whole tensors `tir.ops.einsum`
reshape: the indices of the other shape, or `T.decl_buffer(shape, dtype, data=A.data)`; on whole tensors `tir.ops.reshape`
transpose: the indices in another order; on whole tensors `tir.ops.transpose`
copy, fill: a loop that stores each element
zeros, ones, zeros_like, full: `T.alloc_buffer(shape, dtype)`, and a loop that fills it
empty, empty_like, array: `T.alloc_buffer(shape, dtype)`
arange: a loop, `for i in range(n)`
append: memory of a fixed size, `T.alloc_buffer(shape, dtype)`
load: an element of a buffer, `A[i]`
store: an element of a buffer, `A[i] = value`
reduce_axis: `vk = T.axis.reduce(n, k)` in a block; of tensor expressions, te.reduce_axis
preflattened_buffer: `T.match_buffer(a, shape)` with the shape of the array
program_id: a loop that sch.bind gives to "blockIdx.x", or `T.launch_thread("blockIdx.x", n)`
num_programs: the extent of the loop that is bound to "blockIdx.x"
make_block_ptr: the indices of the tile; sch.cache_read stages what is used again
constexpr: a number of Python around the function; sch.split takes the block size
grid: `T.launch_thread("threadIdx.x", n)`, or a loop that sch.bind gives to it
threadIdx: `T.launch_thread("threadIdx.x", n)`
blockIdx: `T.launch_thread("blockIdx.x", n)`
blockDim: the extent that T.launch_thread is given
syncthreads, __syncthreads, debug_barrier: `T.tvm_storage_sync("shared")`; barriers that a schedule needs are placed by tir.build
device_print, static_print: `T.print(x)`
tl, triton: the dialect's own names, `T.…`; docs/from_triton.md has the table
hl: `tir.te`; docs/from_halide.md has the table
tvm: `import tir as tvm`; docs/from_tvm.md has the table
Func: `te.compute(shape, lambda i, j: …)`
RDom: `te.reduce_axis((0, n))`
ImageParam: `te.placeholder(shape, dtype)`
cuda: the dialect's own names, `T.launch_thread("threadIdx.x", n)` …; docs/gpu.md has them
select: `T.Select(condition, a, b)`, or Python's `a if condition else b`
store_at: sch.compute_at; memory is allocated where it is computed
store_root: sch.compute_root; memory is allocated where it is computed
gpu_tile: sch.tile, and sch.bind for its loops
gpu_blocks: `sch.bind(loop, "blockIdx.x")`
gpu_threads: `sch.bind(loop, "threadIdx.x")`
realize: `tir.build(t)`, and a call with arrays
compile_jit: `tir.build(sch, target)`
compile_to_file: `tir.build(sch, target).save(path)`
in_: sch.cache_read, or sch.cache_write
update: sch.decompose_reduction gives the initial values a block of their own
auto_schedule: `tir.tune(sch.mod, target)`
gpu: `target="cuda"`
cpu: `target="llvm"`
vectorize(): `outer, inner = sch.split(loop, [None, 8])`, then `sch.vectorize(inner)`
unroll(): `outer, inner = sch.split(loop, [None, 4])`, then `sch.unroll(inner)`
parallel(): `outer, inner = sch.split(loop, [None, 8])`, then `sch.parallel(outer)`
tile(): `sch.tile("C", [8, 8])`, with the block and a factor for each of its loops
tune_tir, tune_tasks, tune_relax, tune_relay: `tir.tune(mod, target, …)`
compile_tir: `tir.build(sch.mod, target)`
meta_schedule, auto_scheduler: `tir.tune`
relax, relay: `tir.graph`, and `tir.importers`
dlight: `tir.tune.default(mod, target)`
autodiff: gradients are not built; write the function of the derivative
lru_cache: a function of Python outside of the program
""".strip()
LIBRARIES = ("math", "cmath", "numpy", "scipy", "torch", "jax", "numba", "triton", "cupy", "tensorflow")


@functools.cache
def _advice() -> dict[str, str]:
    rows = (line.partition(": ") for line in _TABLE.splitlines())
    return {name: here for names, _, here in rows for name in names.split(", ")}


def written_here(name: str) -> str | None:
    """What to write in place of ``name``, which another library has; None if the table does not know it.

    >>> written_here("prange"), written_here("np.maximum"), written_here("frobnicate")
    ('`for i in T.parallel(n)`', '`T.max(a, b)`', None)
    """
    from .op import OPS

    last = name.rpartition(".")[2]
    advice = _advice().get(last)
    return advice if advice is not None or last not in OPS else f"`T.{last}(…)`"


def call_here(name: str) -> str | None:
    """What to write in place of a call of ``name`` that is nearly right: a row ``name()`` of the table, or ``name``.

    >>> call_here("sch.vectorize"), call_here("T.where")[:16], call_here("exp")
    ('`outer, inner = sch.split(loop, [None, 8])`, then `sch.vectorize(inner)`', '`T.if_then_else(', None)
    """
    last = name.rpartition(".")[2]
    return _advice().get(f"{last}()") or _advice().get(last)


def library_of(function: object) -> str | None:
    """The library that a function is of, if it computes with numbers or arrays of Python.

    >>> import math
    >>> library_of(math.exp), library_of(len)
    ('math', None)
    """
    module = getattr(function, "__module__", None) or type(function).__module__
    root = str(module).partition(".")[0]
    return root if root in LIBRARIES else None
