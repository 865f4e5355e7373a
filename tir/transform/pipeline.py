"""The order of lowering, and ``lower``."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, overload

from .. import config
from ..analysis.private_clause import infer_private
from ..checked import checked
from ..collecting import seldom_collected
from ..function import HasProgram, IRModule, LowersItself, PrimFunc, answered_by_program
from ..names import near_names
from ..node import Memo, frozendict
from ..stmt import THREAD_BINDING
from ..target import GPUS, Target, added_kind
from ..visit import with_room
from .canonicalize_loop import canonicalize_loop
from .check_thread_memory import check_thread_memory
from .common_subexpr_elim import common_subexpr_elim
from .compact_buffer_allocation import compact_buffer_allocation
from .context import in_context
from .convert_blocks_to_opaque import convert_blocks_to_opaque
from .default_thread_binding import default_thread_binding
from .flatten_buffer import flatten_buffer
from .inject_double_buffer import inject_double_buffer
from .inject_ptx_async_copy import inject_ptx_async_copy
from .inject_software_pipeline import inject_software_pipeline
from .inject_virtual_thread import inject_virtual_thread
from .inline_functions import inline_functions
from .legalize_vector_width import legalize_vector_width
from .loop_partition import loop_partition
from .lower_cross_thread_reduction import lower_cross_thread_reduction
from .lower_init_block import lower_init_block
from .lower_intrin_rules import lower_intrin_rules
from .lower_match_buffer import lower_match_buffer
from .lower_opaque_block import lower_opaque_block
from .lower_thread_allreduce import lower_thread_allreduce
from .lower_warp_memory import lower_warp_memory
from .manifest_shared_memory_local_stage import manifest_shared_memory_local_stage
from .name_products import name_products
from .narrow_datatype import narrow_datatype
from .order_arg_reductions import order_arg_reductions
from .passes import Pass
from .plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from .plan_shared_memory import plan_shared_memory
from .reject_thread_axes import reject_thread_axes
from .remove_no_op import remove_no_op
from .simplify import remove_likely, simplify
from .split_host_device import split_host_device
from .storage_rewrite import storage_rewrite
from .swizzle_storage import swizzle_storage
from .thread_storage_sync import thread_storage_sync
from .unify_thread_binding import unify_thread_binding
from .unroll_loop import unroll_loop
from .use_workspace import use_workspace
from .vectorize_loop import vectorize_loop
from .verify_gpu_code import verify_gpu_code

_log = logging.getLogger(__name__)
Step = Callable[[IRModule], IRModule]


def cpu_pipeline(target: Any = "llvm") -> list[Any]:
    """The passes for a CPU, in order: blocks to loops, buffers to flat memory, loops to vectors and straight code.

    Inside a ``PassContext`` as that changes them.

    >>> [p.name for p in cpu_pipeline()][:3]
    ['reject_thread_axes', 'name_products', 'plan_and_update_buffer_allocation_location']
    """
    passes: list[Any] = [
        reject_thread_axes,
        name_products,
        plan_and_update_buffer_allocation_location,
        order_arg_reductions,
        lower_init_block,
        convert_blocks_to_opaque,
        compact_buffer_allocation,
        inject_double_buffer,
        inject_software_pipeline.configured(cpu=True),
        lower_match_buffer,
        lower_opaque_block,
        flatten_buffer,
        simplify,
        narrow_datatype,
        loop_partition,
        vectorize_loop.configured(masks=True),
        unroll_loop,
        storage_rewrite,
        simplify,
        remove_likely,
        remove_no_op,
        use_workspace,
        lower_intrin_rules.configured(target=target),
        common_subexpr_elim,
    ]
    return in_context(passes)


def gpu_pipeline(target: Any = "cuda") -> list[Any]:
    """The passes for a GPU, in order: blocks to threads, memory of kernels, barriers, kernels and their launches.

    Inside a ``PassContext`` as that changes them.

    >>> gpu_pipeline()[-1].name
    'split_host_device'
    """
    where = Target.of(target)
    passes: list[Any] = [
        inline_functions,
        default_thread_binding,
        canonicalize_loop.configured(kinds=(THREAD_BINDING,)),
        check_thread_memory,
        plan_and_update_buffer_allocation_location,
        manifest_shared_memory_local_stage,
        lower_cross_thread_reduction,
        order_arg_reductions,
        lower_init_block,
        convert_blocks_to_opaque,
        unify_thread_binding,
        compact_buffer_allocation,
        inject_double_buffer,
        inject_software_pipeline,
        lower_match_buffer,
        swizzle_storage,
        lower_opaque_block,
        inject_virtual_thread,
        flatten_buffer,
        simplify,
        narrow_datatype,
        legalize_vector_width,
        vectorize_loop,
        lower_warp_memory,
        inject_ptx_async_copy,
        unroll_loop.configured(max_copies=0, explicit=False),
        simplify,
        lower_thread_allreduce,
        plan_shared_memory.configured(target=where),
        verify_gpu_code.configured(target=where),
        thread_storage_sync,
        remove_likely,
        remove_no_op,
        lower_intrin_rules.configured(target=where),
        split_host_device.configured(target=where),
    ]
    return in_context(passes)


def passes_for(target: Any) -> Iterable[Any]:
    """The passes for a target, in order: those of its kind, which a package outside may have added.

    >>> list(passes_for("cuda"))[0].name
    'inline_functions'
    """
    where = Target.of(target)
    added = added_kind(where.kind)
    if added is not None:
        return added.passes(where)
    return gpu_pipeline(where) if where.kind in GPUS else cpu_pipeline(where)


def name_of(step: Any) -> str:
    return getattr(step, "name", None) or getattr(step, "__name__", type(step).__name__)


@checked
def inserted(passes: Iterable[Any], insert: Mapping[str, Any]) -> list[Any]:
    """``passes`` with user passes put ``"after:<name>"`` or ``"before:<name>"``.

    The value is one pass or a list of them. Raises ``ValueError`` when no pass has the name.

    >>> from tir.transform.pipeline import cpu_pipeline, inserted, name_of
    >>> def count(mod):
    ...     return mod
    >>> [name_of(step) for step in inserted(cpu_pipeline()[:2], {"after:reject_thread_axes": count})]
    ['reject_thread_axes', 'count', 'name_products']
    """
    made = list(passes)
    for place, extra in insert.items():
        where, _, name = place.partition(":")
        names = [name_of(p) for p in made]
        if where not in ("after", "before") or name not in names:
            known = ", ".join(dict.fromkeys(names))
            raise ValueError(f"cannot insert at {place!r}: say 'after:<pass>' or 'before:<pass>' with one of {known}")
        at = len(names) - names[::-1].index(name) if where == "after" else names.index(name)
        made[at:at] = list(extra) if isinstance(extra, (list, tuple)) else [extra]
    return made


def _until(passes: list[Any], upto: str | None) -> list[Any]:
    if upto is None:
        return passes
    names = [name_of(p) for p in passes]
    if upto not in names:
        raise ValueError(f"no pass {upto!r} in the pipeline; it has {', '.join(near_names(upto, names))}")
    return passes[: names.index(upto) + 1]


@overload
def lower(
    func_or_mod: PrimFunc | IRModule | HasProgram | type,
    upto: str | None = ...,
    target: Any = ...,
    passes: Iterable[Any] | None = ...,
    insert: Mapping[str, Any] | None = ...,
    simple_mode: bool = ...,
) -> IRModule: ...
@overload
def lower(
    func_or_mod: LowersItself,
    args: Any,
    name: str = ...,
    simple_mode: bool = ...,
    target: Any = ...,
    binds: Any = ...,
    **options: Any,
) -> IRModule: ...
@answered_by_program
@with_room
@seldom_collected
def lower(
    func_or_mod: PrimFunc | IRModule,
    upto: str | None = None,
    target: Any = None,
    passes: Iterable[Any] | None = None,
    insert: Mapping[str, Any] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """The program lowered for ``target`` (default: this machine's CPU), each stage still a program that prints.

    ``upto`` names the last pass to run (with ``simple_mode``, unless it is given, the last one whose result a person reads:
    loops without blocks, and flat memory); ``passes`` replaces the pipeline; ``insert`` adds passes of your own, as in
    ``{"after:flatten_buffer": my_pass}`` (a pass takes and returns an IRModule). With ``TIR_DUMP=dir`` every stage is
    written there. Raises ``BuildError`` for a program that cannot be lowered, ``ValueError`` for an unknown pass name.

    A stage schedule is lowered by ``lower(s, args, simple_mode=…)``: see ``tir.te.Schedule.lower``.

    >>> import tir
    >>> double = tir.script.parse('''
    ... @T.prim_func
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             vi = T.axis.spatial(8, i)
    ...             B[vi] = A[vi] * T.float32(2)
    ... ''')
    >>> lower(double, upto="lower_opaque_block")["main"].body
    for i in range(8):
        B[i] = A[i] * 2.0
    """
    mod = IRModule.of(func_or_mod)
    last = upto or ("simplify" if simple_mode else None)
    steps = _until(inserted(passes_for(target) if passes is None else passes, insert or {}), last)
    knobs = config.current()
    stages = _Stages(knobs)
    if not knobs.dump and not knobs.verify:
        mod, steps = _where_begun(mod, steps)
    mod = mod.map_functions(infer_private)
    stages.show("input", mod)
    for step in steps:
        start = time.perf_counter()
        made = step(mod)
        if not isinstance(made, IRModule):
            raise TypeError(f"pass {name_of(step)} returned {type(made).__name__}, not an IRModule")
        changes = "no change" if made is mod else "changed"
        _log.debug("%s: %s, %.3g ms", name_of(step), changes, 1e3 * (time.perf_counter() - start))
        mod = made
        stages.show(name_of(step), mod)
    return mod


class _Begun(NamedTuple):
    """The first passes of a function, and what they made of it."""

    passes: list[Any]
    func: PrimFunc


_BEGUN: Memo[_Begun] = Memo()  # by the function


def lowered_before(name: str, func: PrimFunc, target: Any) -> _Begun:
    """What the passes for ``target`` before the first one called ``name`` make of a function.

    >>> import tir
    >>> [_] = lowered_before("flatten_buffer", tir.library.rows.row_sum(4, 8), "llvm").passes[-1:]
    >>> _.name
    'lower_opaque_block'
    """
    passes = list(passes_for(target))
    first = passes[: next((n for n, step in enumerate(passes) if name_of(step) == name), len(passes))]
    return _Begun(first, next(iter(lower(func, passes=first).functions.values())))


def go_on_from(func: PrimFunc, begun: _Begun) -> None:
    """Keep ``begun.func`` as the result of the passes of ``begun`` on ``func``, for its next lowering by passes that begin with them."""
    if all(type(step) is Pass or step is inline_functions for step in begun.passes):
        _BEGUN[func] = begun


def begun_of(func: PrimFunc) -> _Begun | None:
    """What :func:`go_on_from` keeps of a function, which can be pickled with it."""
    return _BEGUN.get(func)


def _where_begun(mod: IRModule, steps: list[Any]) -> tuple[IRModule, list[Any]]:
    """The module, all functions after the first passes if some are (:func:`go_on_from`), and the passes that are left."""
    known = {name: begun for name, f in mod.items() if (begun := _BEGUN.take(f)) and _begin_with(steps, begun.passes)}
    if len(mod) > 1:  # a function may be inlined in another
        known = {name: begun for name, begun in known.items() if inline_functions not in begun.passes}
    if not known:
        return mod, steps
    count = min(len(begun.passes) for begun in known.values())
    known = {name: begun.func for name, begun in known.items() if len(begun.passes) == count}
    others = IRModule({name: f for name, f in mod.items() if name not in known})
    made = {**known, **lower(others, passes=steps[:count]).functions}
    return mod.replace(functions=frozendict({name: made[name] for name in mod})), steps[count:]


def _begin_with(steps: list[Any], first: list[Any]) -> bool:
    """Whether passes begin with equal ones."""
    return len(first) <= len(steps) and all(
        a is b or (type(a) is type(b) is Pass and a.fn is b.fn and a.options == b.options) for a, b in zip(steps, first)
    )


class _Stages:
    """Writes and checks each stage if the config asks for it."""

    def __init__(self, knobs: config.Config):
        self.knobs = knobs
        self.count = 0

    def show(self, name: str, mod: IRModule) -> None:
        if self.knobs.dump:
            os.makedirs(self.knobs.dump, exist_ok=True)
            with open(os.path.join(self.knobs.dump, f"{self.count:02d}_{name}.py"), "w", encoding="utf-8") as file:
                file.write(mod.script() + "\n")
        if self.knobs.verify:
            from ..analysis.wellformed import verify

            for func in mod.functions.values():
                verify(func)
        self.count += 1
