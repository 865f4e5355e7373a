"""Operators with effects: barriers, tensor cores, asynchronous copies, printing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...dtype import DType
from ...errors import RunError
from ...expr import Call, IntImm, StringImm
from ...op import string_arg
from . import barriers, clusters, copies, engine, matrix, tensor_maps, wgmma
from .lanes import Lanes
from .report import Site

# ---------------------------------------------------------------- at run time


def require(lanes: Lanes, act: Any, site: Site, condition: Any, message: str) -> None:
    """Report a finding if the condition is false in an active thread."""
    here = lanes.all if act is None else act
    bad = here[~lanes.spread(condition)[here].astype(bool)]
    if len(bad):
        lanes.fail("assertion", f"an assertion fails: {message}", site, bad)


def endless(site: Site, rounds: int) -> None:
    raise RunError(
        f"line {site.line}: {site.text}\n  the loop has gone {rounds} rounds; blocks run one after another here, so a thread "
        "that waits for another block waits for ever"
    )


def linear(
    lanes: Lanes, act: Any, site: Site, view: Any, indices: tuple[Any, ...], strides: tuple[int, ...]
) -> tuple[Any, Any]:
    """The flat index into a buffer with several axes, and the active threads whose index is in bounds on every axis."""
    if not strides:
        made = [1]
        for extent in reversed(view.shape[1:]):
            made.append(made[-1] * extent)
        strides = tuple(reversed(made))
    wide = any(np.ndim(i) == 2 for i in indices)
    total: Any = 0
    for axis, (index, extent, stride) in enumerate(zip(indices, view.shape, strides)):
        at = lanes.spread(index).astype(np.int64)
        bad = (at < 0) | (at >= extent)
        if bad.any():
            rows = bad if bad.ndim == 1 else bad.any(axis=1)
            here = lanes.all if act is None else act
            out = here[rows[here]]
            if len(out):
                value = at[out[0]] if at.ndim == 1 else at[out[0]].tolist()
                where = f"index {axis} is {value}, and must be in [0, {extent})"
                lanes.fail("bounds", f"{site.what} of {view.name} is out of bounds: {where}", site, out)
                act = here[~rows[here]]
        total = total + (at[:, None] if wide and at.ndim == 1 else at) * stride
    return total, act


def lanes_of(lanes: Lanes, index: Any, width: int) -> np.ndarray:
    """The indices of the scalars of elements of a vector type."""
    at = lanes.spread(index)
    return (at[..., None] * width + np.arange(width)).reshape(lanes.count, -1)


def atomic_add(lanes: Lanes, act: Any, site: Site, target: tuple[Any, Any], value: Any) -> np.ndarray:
    return target[0].add(target[1], value, act, site)


# ---------------------------------------------------------------- at compile time


def _barrier(c: Any, e: Call) -> None:
    scope = string_arg(e.args[0]) if e.args and isinstance(e.args[0], StringImm) else "shared"
    if scope == "warp" or (e.op == "call_extern" and scope == "__syncwarp"):
        c.emit(f"c.warp_barrier({c.mask}, {c.site('barrier')})")
        return
    c.emit(f"c.barrier({c.mask}, {c.site('barrier')})")
    c.emit("yield 1")
    c.emit(f"c.barrier_over({c.mask})")


def _print(c: Any, e: Call) -> None:
    args = e.args[1:] if e.op == "call_extern" else e.args
    parts = ", ".join(repr(a.value) if isinstance(a, StringImm) else c.each(a) for a in args)
    c.emit(f"c.say({c.mask}, ({parts},))" if parts else f"c.say({c.mask}, ())")


def _call(c: Any, fn: Any, site: str, *args: str) -> None:
    c.emit(f"{c.helper(fn)}({', '.join(['c', c.mask, site, *args])})")


def _name_of(pointer: Any) -> str:
    """The buffer or pointer that an argument names."""
    if isinstance(pointer, Call):
        return pointer.args[0].buffer.name if pointer.op == "address_of" else pointer.args[1].name
    return getattr(pointer, "name", "")


def number(e: Any, what: str) -> int:
    if not isinstance(e, IntImm):
        raise RunError(f"{what} must be a constant, not `{e!r}`")
    return e.value


def _mma(c: Any, e: Call) -> None:
    shape, la, lb, ta, tb, tc, a, a_at, b, b_at, d, d_at, *_ = e.args
    layouts = f"{string_arg(la)},{string_arg(lb)}"
    types = tuple(string_arg(t) for t in (ta, tb, tc))
    _call(c, matrix.mma, c.site("mma"), repr(string_arg(shape)), repr(layouts), repr(types), c.pointer(a, behind=a_at),
          c.pointer(b, behind=b_at), c.pointer(d, behind=d_at))  # fmt: skip


def _direct(fn: Any, what: str, named: int, *forms: str) -> Any:
    """An operator that ``fn`` executes, whose accesses are to what the argument of number ``named`` points at. A form for each
    argument: text, a pointer, a string; constant, with what it is. A place is of two: a pointer, of elements of the operator's type
    (memory) or its own, and how far behind that."""

    def run(c: Any, e: Call) -> None:
        site = c.site(what, _name_of(e.args[named]))
        rest = iter(e.args)
        made = [_FORMS[form.split()[0]](c, e, rest, form) for form in forms]
        _call(c, fn, site, *(text for text in made if text))

    return run


_FORMS: dict[str, Callable[[Any, Call, Iterator[Any], str], str]] = {
    "text": lambda c, e, rest, form: c.text(next(rest)),
    "pointer": lambda c, e, rest, form: c.pointer(next(rest)),
    "place": lambda c, e, rest, form: c.pointer(next(rest), behind=next(rest)),
    "memory": lambda c, e, rest, form: c.pointer(next(rest), e.dtype.element, next(rest)),
    "string": lambda c, e, rest, form: repr(string_arg(next(rest))),
    "constant": lambda c, e, rest, form: str(number(next(rest), form.removeprefix("constant "))),
    "flag": lambda c, e, rest, form: str(bool(number(next(rest), form.removeprefix("flag ")))),
    "none": lambda c, e, rest, form: (next(rest), "")[1],
}
_FRAGMENT = ("pointer", "constant m", "constant n", "constant k", "text")  # and its shape, and which it is
_TILE = ("pointer", "text", "string")


def _wmma_mma(c: Any, e: Call) -> None:
    d, d_at, a, a_at, b, b_at, x, x_at = e.args
    shapes = c.survey.shapes
    shape = next((shapes[v] for v in (a, b, x, d) if v in shapes), None)
    if shape is None:
        raise RunError(f"nothing loads or fills the fragments of `{e!r}`, so their shape is not known")
    _call(c, matrix.wmma_mma, c.site("mma"), c.pointer(d), c.text(d_at), c.pointer(a), c.text(a_at), c.pointer(b),
          c.text(b_at), c.pointer(x), c.text(x_at), repr(shape))  # fmt: skip


def _cp_async(c: Any, e: Call) -> None:
    dst, dst_at, src, src_at, count, *predicate = e.args
    size = number(count, "cp.async's size")
    if size not in (4, 8, 16):
        raise RunError(f"cp.async copies 4, 8 or 16 bytes, not {size!r}: `{e!r}`")
    kind = e.dtype.element
    _call(c, copies.start, c.site("write", _name_of(dst)), c.site("read", _name_of(src)), c.pointer(dst, kind, dst_at),
          c.pointer(src, kind, src_at), str(size), *(c.text(p) for p in predicate[:1]))  # fmt: skip


def _ordered(fn: Any) -> Any:
    """An operator that accesses nothing, and can fail at no place."""

    def run(c: Any, e: Call) -> None:
        c.emit(f"{c.helper(fn)}({', '.join(['c', c.mask, *map(c.text, e.args)])})")

    return run


def _of_barriers(run: Callable[[Any, Call], None]) -> Callable[[Any, Call], None]:
    """An operator that takes a transaction barrier, by its number."""

    def checked(c: Any, e: Call) -> None:
        if not c.survey.engines.transactions:
            raise RunError(f"there are no transaction barriers, of which `{e!r}` takes one: create_barriers makes them")
        run(c, e)

    return checked


def _wait(fn: Any, what: str) -> Any:
    """An operator that waits, perhaps for other threads of its own warp."""

    def run(c: Any, e: Call) -> None:
        args = "".join(f", {c.text(a)}" for a in e.args)
        name = c.keep(f"{c.helper(fn)}(c, {c.mask}, {c.site(what)}{args})", "wait")
        c.emit(f"while {name}.blocked():")
        c.emit("    yield 2")

    return run


def _plain(fn: Any, what: str) -> Any:
    """An operator whose arguments are numbers."""

    def run(c: Any, e: Call) -> None:
        _call(c, fn, c.site(what), *(c.text(a) for a in e.args))

    return run


@_of_barriers
def _bulk(c: Any, e: Call) -> None:
    dst, dst_at, src, src_at, size, barrier = e.args
    kind = e.dtype.element if e.dtype.bits else None
    _call(c, engine.bulk, c.site("write", _name_of(dst)), c.site("read", _name_of(src)), c.pointer(dst, kind, dst_at),
          c.pointer(src, kind, src_at), c.text(size), c.text(barrier))  # fmt: skip


def _mapped(e: Any) -> Any:
    """The pointer of a call of ``tensor_map``."""
    if not isinstance(e, Call) or e.op != "tensor_map":
        raise RunError(f"a copy of a box takes a T.tensor_map, not `{e!r}`")
    return e.args[0]


def _tensor_map(c: Any, e: Any) -> str:
    """Source of the map of a call of ``tensor_map``."""
    pointer, dtype, *numbers = e.args
    kind = DType(string_arg(dtype))
    parts = ", ".join(c.text(n) for n in numbers)
    return c.keep(f"{c.helper(tensor_maps.tensor_map)}({c.pointer(pointer, kind)}, {c.const(kind)}, {parts})", "map")


@_of_barriers
def _tensor_load(c: Any, e: Call) -> None:
    dst, dst_at, source, barrier, *rest = e.args
    mask = ""
    if e.op == "ptx_cp_async_bulk_tensor_multicast":
        bits, *rest = rest
        mask = f", mask={c.text(bits)}"
    coordinates = ", ".join(c.text(x) for x in rest)
    _call(c, tensor_maps.load, c.site("write", _name_of(dst)), c.site("read", _name_of(_mapped(source))), c.pointer(dst, behind=dst_at),
          _tensor_map(c, source), c.text(barrier), coordinates + mask)  # fmt: skip


def _tensor_store(c: Any, e: Call) -> None:
    target, src, src_at, *coordinates = e.args
    _call(c, tensor_maps.store, c.site("write", _name_of(_mapped(target))), _tensor_map(c, target), c.pointer(src, behind=src_at),
          *(c.text(x) for x in coordinates))  # fmt: skip


def _wait_stores(written: bool) -> Any:
    def run(c: Any, e: Call) -> None:
        count = number(e.args[0], "the number of groups")
        c.emit(f"{c.helper(engine.wait)}(c, {c.mask}, {count}, {written})")

    return run


def _wgmma(c: Any, e: Call) -> None:
    shape, ta, tb, td, d, d_at, *rest = e.args
    types = tuple(string_arg(t) for t in (ta, tb, td))
    matrices = []
    for pointer, offset, *layout in (rest[:6], rest[6:12]):
        numbers = tuple(number(x, "the layout of a matrix of ptx_wgmma") for x in layout)
        matrices += [c.pointer(pointer, behind=offset), repr(numbers)]
    _call(c, wgmma.multiply, c.site("wgmma", _name_of(d)), repr(string_arg(shape)), repr(types), c.pointer(d, behind=d_at),
          *matrices, c.text(rest[12]))  # fmt: skip


def _set_registers(c: Any, e: Call) -> None:
    count, increase = (number(a, "an argument of ptx_setmaxnreg") for a in e.args)
    _call(c, clusters.set_registers, c.site("registers"), str(count), str(increase))


def _assume(c: Any, e: Call) -> None:
    c.require(e.args[0], f"assumed {e.args[0]!r}")


def _nothing(c: Any, e: Call) -> None:
    pass


EFFECTS = {
    "tvm_storage_sync": _barrier,
    "print": _print,
    "ptx_mma": _mma,
    "ptx_ldmatrix": _direct(
        matrix.ldmatrix,
        "read",
        5,
        "flag ldmatrix's transposition",
        "constant ldmatrix's number of matrices",
        "none",
        "memory",
        "memory",
    ),  # fmt: skip
    "mma_fill": _direct(matrix.mma_fill, "write", 1, "constant mma_fill's size", "place"),
    "mma_store": _direct(matrix.mma_store, "write", 2, "constant m", "constant n", "pointer", "place", "text"),
    "tvm_load_matrix_sync": _direct(matrix.wmma_load, "read", 5, *_FRAGMENT, *_TILE),
    "tvm_store_matrix_sync": _direct(matrix.wmma_store, "write", 5, *_FRAGMENT, *_TILE),
    "tvm_fill_fragment": _direct(matrix.wmma_fill, "write", 0, *_FRAGMENT, "text"),
    "tvm_mma_sync": _wmma_mma,
    "ptx_cp_async": _cp_async,
    "ptx_commit_group": _ordered(copies.commit),
    "ptx_wait_group": _ordered(copies.wait),
    "create_barriers": _nothing,
    "ptx_init_barrier_thread_count": _of_barriers(_plain(barriers.initialise, "barrier")),
    "ptx_arrive_barrier": _of_barriers(_plain(barriers.arrive, "barrier")),
    "ptx_arrive_barrier_expect_tx": _of_barriers(_plain(barriers.arrive, "barrier")),
    "ptx_cp_async_barrier": _of_barriers(_plain(barriers.arrive_after_copies, "barrier")),
    "ptx_wait_barrier": _of_barriers(_wait(barriers.Wait, "barrier")),
    "ptx_arrive_barrier_cluster": _of_barriers(_plain(clusters.arrive_remote, "barrier")),
    "ptx_fence_barrier_init": _ordered(barriers.fence_initialised),
    "ptx_fence_proxy_async": _ordered(engine.fence),
    "ptx_cp_async_bulk": _bulk,
    "ptx_cp_async_bulk_tensor": _tensor_load,
    "ptx_cp_async_bulk_tensor_multicast": _tensor_load,
    "ptx_cp_async_bulk_tensor_store": _tensor_store,
    "ptx_cp_async_bulk_commit_group": _ordered(engine.commit),
    "ptx_cp_async_bulk_wait_group": _wait_stores(True),
    "ptx_cp_async_bulk_wait_group_read": _wait_stores(False),
    "ptx_wgmma": _wgmma,
    "ptx_wgmma_fence": _plain(wgmma.fence, "fence"),
    "ptx_wgmma_commit_group": _plain(wgmma.commit, "commit"),
    "ptx_wgmma_wait_group": _plain(wgmma.wait, "wait"),
    "ptx_setmaxnreg": _set_registers,
    "ptx_cluster_arrive": _plain(clusters.arrive, "barrier"),
    "ptx_cluster_wait": _wait(clusters.Wait, "barrier"),
    "assume": _assume,
    "prefetch": _nothing,
}

EXTERNS = {"print": _print, "printf": _print, "__syncthreads": _barrier, "__syncwarp": _barrier}

WAITS = ("ptx_wait_barrier", "ptx_cluster_wait")  # for what other threads do, perhaps in another branch
# operators of what works beside the threads, or orders it: barriers of the block do not
ENGINES = frozenset(
    op
    for op in EFFECTS
    if op == "create_barriers"
    or op.startswith(("ptx_cp_async_bulk", "ptx_wgmma", "ptx_cluster", "ptx_fence", "ptx_setmax"))
)
