"""Which test runs each row of users' notes of 2019 to 2024 that tensor expressions brought: their lines, with only the
import changed. A row names its tests; one that is renamed or gone fails here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

FOLDERS = [Path(__file__).parent, *(Path(__file__).parents[1] / name for name in ("ops", "tune", "lower"))]

ROWS = {
    # A: te on CPU and GPU
    "a def with intermediate values as fcompute": "user_scripts: a_def_with_intermediate_values_computes_a_block_of_a_matrix",
    'te.sum(A[i, k], axis=k), te.reduce_axis((0, recur), "k")': "user_lines: sum_of_rows_of_symbolic_size",
    "one reduce_axis given to two computes": "user_scripts: one_reduction_axis_given_to_two_computes",
    "a compute with several outputs; a tuple of te.sum": "reductions_inside: tuple_of_two_sums_is_one_block",
    "te.sum(…) and + in one compute": "reductions_inside: sum_plus_a_bias",
    'te.const(0, "int8")': "user_scripts: int8_stays_int8",
    "C.op.axis[0], s[C].op.axis, s[C].op.reduce_axis[0]": "stage_schedule: op_axis_stays_what_it_was_after_a_split",
    "split(…, factor=), nparts=, nested": "stage_schedule: nested_splits_with_factors_that_do_not_divide",
    "reorder, a reduction axis in the middle": "user_scripts: a_reduction_axis_between_the_others_and_stages_in_each_other",
    "vectorize, parallel, unroll, tile": "stage_schedule: opt_gemm_with_packing_and_a_write_cache",
    "s[B].fuse(x, y)": "stage_schedule: split_fuse_and_reorder_name_loops_as_the_classic_api_does",
    "s[B].compute_at(s[C], C.op.axis[0])": "stage_schedule: compute_at_computes_what_is_needed_there",
    "s[cm1].compute_at(s[c11], c11.op.axis[4])": "user_scripts: a_reduction_axis_between_the_others_and_stages_in_each_other",
    "s[B].compute_root()": "stage_schedule: a_refused_step_leaves_the_record_and_the_next_lowering_goes_on",
    "s[B].compute_inline()": "stage_schedule: inlining_by_class",
    's.cache_read(A, "shared", [B])': "stage_schedule: cache_read_gives_the_readers_a_copy",
    's.cache_write(B, "local")': "stage_schedule: opt_gemm_with_packing_and_a_write_cache",
    'te.thread_axis("threadIdx.x"), te.thread_axis((0, num_thread), "threadIdx.x")': "user_scripts: threads_of_a_two_dimensional_grid",
    "s[C].bind(ki, thread_z), of a reduction axis": "stage_schedule: reduction_across_threads",
    "virtual threads": "stage_schedule: opt_conv_cuda_on_the_simulator",
    "s[CC].tensorize(ty, intrin_wmma_gemm())": "conv_tensorcore: convolution_by_tensor_cores",
    "its error": "user_errors: a_tile_that_an_instruction_does_not_fit",
    "print(tvm.lower(s, [A, B, C], simple_mode=True)) after every step": "user_scripts: lower_is_printed_after_every_step_and_differs",
    'tvm.build(s, [A, B, C], target=target, name="mmult")': "stage_schedule: opt_gemm_with_packing_and_a_write_cache",
    "get_source(), imported_modules, time_evaluator": "user_scripts: a_kernel_is_timed_and_shows_the_source_of_its_device",
    "tvm.nd.array(a)": "user_scripts: a_def_with_intermediate_values_computes_a_block_of_a_matrix",
    "topi.sum(A, axis=1), topi.broadcast_add, topi.broadcast_mul": "user_lines: broadcasting_then_a_reduction",
    "topi.nn.softmax(tarray)": "user_lines: softmax_under_a_stage_schedule",
    "topi.nn.conv2d fused with topi.nn.relu": "user_lines: conv2d_fused_with_relu_under_a_stage_schedule",
    "batch_matmul": "user_lines: dense_with_a_bias_and_a_batch_of_matrices",
    "opt_gemm": "stage_schedule: opt_gemm_with_packing_and_a_write_cache",
    "opt_conv_cuda": "stage_schedule: opt_conv_cuda_on_the_simulator",
    "opt_conv_tensorcore": "conv_tensorcore: convolution_by_tensor_cores",
    "recursion and loops: scan": "user_scripts: a_scan_whose_stages_are_scheduled",
    "te.if_then_else, a padded image": "user_scripts: a_padded_convolution_and_its_activation_with_injective_stages_inlined",
    "te.var": "user_scripts: a_variable_is_an_argument",
    "s.rfactor": "stage_schedule: rfactor",
    "s[..].set_scope": "stage_schedule: memory_is_inferred_from_the_threads_around",
    "storage_align, double_buffer, pragma": "stage_schedule: alignment_double_buffers_and_pragmas_are_told_to_the_blocks",
    "set_store_predicate": "stage_memory: a_predicate_that_leaves_out_repetitions",
    "prefetch": "stage_memory: prefetch_of_what_the_loop_reads",
    "env_threads": "stage_memory: a_scan_in_threads_is_one_kernel_with_time_inside",
    "te.decl_tensor_intrin, te.decl_buffer": "declared_intrin: reset_and_update",
    "error: one thread axis of two extents": "user_errors: one_thread_axis_of_1024_and_of_4",
    "error: !out_dom_map->count(this->reduce_axis[i])": "user_errors: one_reduction_axis_of_two_computes",
    "error: an array on the host for a kernel": "user_errors: an_array_on_the_host_for_a_kernel",
    "error: a loop of another stage": "user_errors: a_loop_of_another_stage",
    "error: an axis that was split": "user_errors: an_axis_that_was_split",
    "error: ReduceEqual(reduce, reduce_)": "user_errors: a_tuple_whose_results_are_chosen_by_different_conditions",
    "error: more than 1024 threads": "user_errors: more_than_1024_threads_are_refused_where_they_are_bound",
    "error: too much shared memory": "user_errors: too_much_shared_memory_is_refused_with_the_buffers",
    "error: an attachment that cannot see the consumer": "user_errors: a_place_that_cannot_see_the_consumer_is_refused",
    # B
    "te.schedule.AutoInlineInjective(s)": "user_scripts: a_padded_convolution_and_its_activation_with_injective_stages_inlined",
    "s_state, s_init, s_update; a cell of several stages": "scan: recurrent_cell",
    "scan of several states": "scan: several_states",
    'tvm.target.register_intrin_rule("cuda", "exp", rule, override=True)': "lower_intrin_rules: rule_for_an_operator_on_cuda",
    "tvm.ir.register_op_attr": "lower_intrin_rules: operator_of_ones_own",
    "autotvm.template, define_split, tuners, apply_history_best": "template: a_note_of_2020_runs_with_changed_imports",
    "te.extern": "extern: packed_function_gets_arrays",
    "ir_builder: buffer_ptr, allocate, BufferVar": "extern: builder_has_conditions_and_memory",
    "decl_buffer": "extern: buffers_that_the_user_declares",
    "te.hybrid.script": "hybrid: outer_product",
    "hybrid: range, unroll, parallel, vectorize, const_range": "hybrid: kinds_of_loops",
    "hybrid: bind": "hybrid: threads",
    "hybrid: log, exp, sigmoid, tanh, power, popcount": "hybrid: functions_and_types",
    "hybrid: allocate(shape, type, share)": "hybrid: memory_of_its_own",
    "hybrid: chained conditions, assert": "hybrid: conditions_with_chains_and_assertions",
    "hybrid: split, fuse and reorder of its loops": "hybrid: its_loops_can_be_scheduled",
    # C
    "tile, then tensorize by gemm8x8": "tensorize_stage: reduction_in_steps",
    "cooperative fetching, memory scopes inferred": "stage_schedule: memory_is_inferred_from_the_threads_around",
    # D
    "tvm.reduce_axis, tvm.compute without te": "user_scripts: names_of_2019_without_te",
    "storage_align(factor, offset)": "stage_schedule: alignment_double_buffers_and_pragmas_are_told_to_the_blocks",
}  # fmt: skip


@cache
def functions_of(name: str) -> set[str]:
    path = next(p for f in FOLDERS if (p := f / f"test_{name}.py").exists())
    return {n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef)}


def test_every_row_of_the_notes_has_a_test():
    named = {row: at.partition(": ") for row, at in ROWS.items()}
    assert not {row: at for row, (file, _, at) in named.items() if f"test_{at}" not in functions_of(file)}
