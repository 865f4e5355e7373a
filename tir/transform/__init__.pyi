"""Made by ``python -m tests.tools.generated``; do not edit."""

# ruff: noqa
# fmt: off
from typing import Any

from .canonicalize_loop import canonicalize_loop as canonicalize_loop
from .check_thread_memory import check_thread_memory as check_thread_memory
from .common_subexpr_elim import common_subexpr_elim as common_subexpr_elim
from .compact_buffer_allocation import compact_buffer_allocation as compact_buffer_allocation
from .context import PassContext as PassContext
from .convert_blocks_to_opaque import convert_blocks_to_opaque as convert_blocks_to_opaque
from .convert_ssa import convert_ssa as convert_ssa
from .default_thread_binding import default_thread_binding as default_thread_binding
from .flatten_buffer import flatten_buffer as flatten_buffer
from .inject_double_buffer import inject_double_buffer as inject_double_buffer
from .inject_ptx_async_copy import inject_ptx_async_copy as inject_ptx_async_copy
from .inject_software_pipeline import inject_software_pipeline as inject_software_pipeline
from .inject_virtual_thread import inject_virtual_thread as inject_virtual_thread
from .inline_functions import inline_functions as inline_functions
from .legalize_vector_width import legalize_vector_width as legalize_vector_width
from .loop_partition import loop_partition as loop_partition
from .lower_cross_thread_reduction import lower_cross_thread_reduction as lower_cross_thread_reduction
from .lower_init_block import lower_init_block as lower_init_block
from .lower_intrin import lower_intrin as lower_intrin
from .lower_intrin_rules import lower_intrin_rules as lower_intrin_rules
from .lower_match_buffer import lower_match_buffer as lower_match_buffer
from .lower_opaque_block import lower_opaque_block as lower_opaque_block
from .lower_thread_allreduce import lower_thread_allreduce as lower_thread_allreduce
from .lower_warp_memory import lower_warp_memory as lower_warp_memory
from .manifest_shared_memory_local_stage import manifest_shared_memory_local_stage as manifest_shared_memory_local_stage
from .name_products import name_products as name_products
from .narrow_datatype import narrow_datatype as narrow_datatype
from .order_arg_reductions import order_arg_reductions as order_arg_reductions
from .passes import ModulePass as ModulePass, PASSES as PASSES, Pass as Pass, Sequential as Sequential, find as find, func_pass as func_pass, module_pass as module_pass
from .pipeline import cpu_pipeline as cpu_pipeline, gpu_pipeline as gpu_pipeline, inserted as inserted, lower as lower
from .plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location as plan_and_update_buffer_allocation_location
from .plan_shared_memory import plan_shared_memory as plan_shared_memory, shared_memory_plan as shared_memory_plan
from .reject_thread_axes import reject_thread_axes as reject_thread_axes
from .remove_no_op import remove_no_op as remove_no_op
from .shared_memory_table import SharedMemoryPlan as SharedMemoryPlan
from .simplify import remove_likely as remove_likely, simplify as simplify
from .skip_vectorize import skip_vectorize as skip_vectorize
from .split_host_device import split_host_device as split_host_device
from .storage_rewrite import storage_rewrite as storage_rewrite
from .swizzle_storage import swizzle_storage as swizzle_storage
from .thread_storage_sync import thread_storage_sync as thread_storage_sync
from .unify_thread_binding import unify_thread_binding as unify_thread_binding
from .unroll_loop import unroll_loop as unroll_loop
from .use_workspace import use_workspace as use_workspace
from .vectorize_loop import vectorize_loop as vectorize_loop
from .verify_gpu_code import verify_gpu_code as verify_gpu_code

__all__: list[str]

def __getattr__(name: str) -> Any: ...
