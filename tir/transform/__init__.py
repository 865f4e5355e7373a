"""Lowering: small passes over modules, in the order of :func:`cpu_pipeline`.

Every pass is a function ``tir.transform.flatten_buffer(mod)``; ``tir.transform.FlattenBuffer()(mod)`` is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import extension
from .canonicalize_loop import canonicalize_loop
from .check_cpu import refuse_thread_axes
from .common_subexpr_elim import common_subexpr_elim
from .compact_buffer_allocation import compact_buffer_allocation
from .convert_blocks_to_opaque import convert_blocks_to_opaque
from .default_thread_binding import default_thread_binding
from .flatten_buffer import flatten_buffer
from .inject_double_buffer import inject_double_buffer
from .inject_ptx_async_copy import inject_ptx_async_copy
from .inject_software_pipeline import inject_software_pipeline
from .inject_virtual_thread import inject_virtual_thread
from .legalize_vector_width import legalize_vector_width
from .loop_partition import loop_partition
from .lower_cross_thread_reduction import lower_cross_thread_reduction
from .lower_init_block import lower_init_block
from .lower_intrin import lower_intrin
from .lower_match_buffer import lower_match_buffer
from .lower_opaque_block import lower_opaque_block
from .lower_thread_allreduce import lower_thread_allreduce
from .lower_warp_memory import lower_warp_memory
from .manifest_shared_memory_local_stage import manifest_shared_memory_local_stage
from .narrow_datatype import narrow_datatype
from .passes import PASSES, ModulePass, Pass, Sequential, find, func_pass, module_pass
from .pipeline import cpu_pipeline, gpu_pipeline, inserted, lower
from .plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from .plan_shared_memory import SharedMemoryPlan, plan_shared_memory, shared_memory_plan
from .remove_no_op import remove_no_op
from .simplify import remove_likely, simplify
from .split_host_device import split_host_device
from .storage_rewrite import storage_rewrite
from .thread_storage_sync import thread_storage_sync
from .unify_thread_binding import unify_thread_binding
from .unroll_loop import unroll_loop
from .vectorize_loop import vectorize_loop
from .verify_gpu_code import verify_gpu_code


def __getattr__(name: str) -> Callable[..., Any]:
    """``LowerInitBlock(**options)`` gives the pass ``lower_init_block`` with its options set."""
    if name == "PassContext":
        from ..compat import PassContext

        return PassContext
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if name[:1].isupper():
        if snake not in PASSES:
            extension.load(extension.PASSES)
        if snake in PASSES:
            return PASSES[snake].configured
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(globals())


__all__ = [
    "lower_warp_memory",
    "manifest_shared_memory_local_stage",
    "legalize_vector_width",
    "default_thread_binding",
    "verify_gpu_code",
    "inject_double_buffer",
    "inject_virtual_thread",
    "inject_ptx_async_copy",
    "inject_software_pipeline",
    "lower_thread_allreduce",
    "lower_cross_thread_reduction",
    "PASSES",
    "ModulePass",
    "Pass",
    "Sequential",
    "SharedMemoryPlan",
    "canonicalize_loop",
    "common_subexpr_elim",
    "compact_buffer_allocation",
    "convert_blocks_to_opaque",
    "cpu_pipeline",
    "find",
    "flatten_buffer",
    "func_pass",
    "gpu_pipeline",
    "inserted",
    "loop_partition",
    "lower",
    "lower_init_block",
    "lower_intrin",
    "lower_match_buffer",
    "lower_opaque_block",
    "module_pass",
    "narrow_datatype",
    "plan_and_update_buffer_allocation_location",
    "plan_shared_memory",
    "refuse_thread_axes",
    "remove_likely",
    "remove_no_op",
    "shared_memory_plan",
    "simplify",
    "split_host_device",
    "storage_rewrite",
    "thread_storage_sync",
    "unify_thread_binding",
    "unroll_loop",
    "vectorize_loop",
]
