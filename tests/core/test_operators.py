"""Every operator of the table has a meaning in every backend, or is listed here as one that it does not have."""

from __future__ import annotations

import subprocess
import sys

import pytest

import codegen.cuda.kernel
import codegen.llvm.function  # noqa: F401  (both fill their tables)
from codegen.cuda.generator import RULES as CUDA
from codegen.cuda.ops import NO_MEANING
from codegen.llvm.generator import RULES as LLVM
from tir import op
from tir.expr import Var
from tir.interp import expressions
from tir.interp.gpu import intrinsics, thread_values
from tir.script import tir as T

NUMPY = {name for name, entry in op.OPS.items() if entry.numpy is not None}  # both interpreters compute these so
TABLES = {
    "codegen/llvm (op_rule)": set(LLVM.ops),
    "codegen/cuda (op_rule, or NO_MEANING with a reason)": set(CUDA.ops) | set(NO_MEANING),
    "tir/interp/expressions.py (_CALLS)": set(expressions._CALLS) | NUMPY,
    "tir/interp/gpu (thread_values._CALLS, intrinsics.EFFECTS)": set(thread_values._CALLS)
    | set(intrinsics.EFFECTS)
    | NUMPY,
}
CPU, GPU, EXECUTOR, SIMULATOR = TABLES

# by the backends that lack them
LACKING = {
    # of backends and runtimes that are not here, or lowered before code is generated
    (CPU, EXECUTOR, SIMULATOR): """
        anylist_getitem anylist_resetitem anylist_setitem_call_cpacked anylist_setitem_call_packed
        call_spirv_pure_glsl450 dma_copy dma_end_group dma_start_group dma_wait lookup_param
        make_filled_simdgroup_matrix mma_fill_legacy mma_store_legacy nd_mem_alloc_with_scope ptx_mma_sp
        q_multiply_shift_per_axis shift_right_rounding simdgroup_load simdgroup_multiply_accumulate simdgroup_store
        texture2d_load texture2d_store tvm_bmma_sync tvm_call_cpacked_lowered tvm_call_packed_lowered
        tvm_call_trace_packed tvm_check_return tvm_context_id tvm_global_barrier_kinit tvm_stack_alloca
        tvm_stack_make_array tvm_stack_make_shape tvm_struct_get tvm_struct_set tvm_thread_allreduce
        tvm_throw_last_error tvm_tuple vectorload vectorstore
        ptx_ldg32 tensor_map
    """,
    # of the LLVM backend alone
    (EXECUTOR, SIMULATOR): """
        end_profile_intrinsic start_profile_intrinsic type_annotation
    """,
    # of kernels alone
    (CPU, EXECUTOR): """
        create_barriers ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_cp_async_barrier ptx_cp_async_bulk
        ptx_fence_barrier_init ptx_init_barrier_thread_count ptx_wait_barrier
        ptx_arrive_barrier_cluster ptx_cluster_arrive ptx_cluster_wait ptx_cp_async_bulk_commit_group
        ptx_cp_async_bulk_tensor ptx_cp_async_bulk_tensor_multicast ptx_cp_async_bulk_tensor_store
        ptx_cp_async_bulk_wait_group ptx_cp_async_bulk_wait_group_read ptx_fence_proxy_async
        ptx_setmaxnreg ptx_wgmma ptx_wgmma_commit_group ptx_wgmma_fence ptx_wgmma_wait_group
        mma_fill mma_store ptx_commit_group ptx_cp_async ptx_ldmatrix ptx_mma ptx_wait_group tvm_fill_fragment
        tvm_load_matrix_sync tvm_mma_sync tvm_store_matrix_sync tvm_warp_activemask tvm_warp_shuffle
        tvm_warp_shuffle_down tvm_warp_shuffle_up tvm_warp_shuffle_xor
    """,
    # of the host
    (SIMULATOR,): """
        amx_tile_dot amx_tile_load amx_tile_store amx_tile_stream amx_tile_zero call_cpacked call_global call_packed
        tvm_call_cpacked tvm_call_packed address_of isnullptr ret thread_return tvm_access_ptr
        call_llvm_intrin call_llvm_pure_intrin
    """,
    (CPU, SIMULATOR): "get_active_lane_mask",
    (EXECUTOR,): "prefetch tvm_storage_sync",  # statements, which its compiler knows
}


def lacking(backend: str) -> set[str]:
    return {name for backends, names in LACKING.items() if backend in backends for name in names.split()}


def declared() -> set[str]:
    """The operators of the table itself, without those that other tests register."""
    code = "from tir import op; print(*op.OPS)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_every_backend_has_every_operator():
    names = declared()
    forgotten = {where: sorted(names - table - lacking(where)) for where, table in TABLES.items()}
    text = "\n".join(f"no meaning in {where}: {', '.join(some)}" for where, some in forgotten.items() if some)
    assert not text, text


def test_what_is_listed_as_lacking_is():
    for where, table in TABLES.items():
        assert not lacking(where) & table, f"{where} has a meaning for what is listed here as lacking"
        assert lacking(where) <= declared()
    assert not set(CUDA.ops) & set(NO_MEANING)


def test_docstrings_say_where_operators_run():
    said = {name: entry.about for name, entry in op.OPS.items()}
    refused = {name for name, about in said.items() if "refused by ``tir.build``" in about}
    assert len(refused) > 30 and not refused & (TABLES[CPU] | set(CUDA.ops) | TABLES[EXECUTOR])
    kernels = {name for name, about in said.items() if "CUDA, and the simulator." in about}
    assert len(kernels) > 10 and kernels <= set(CUDA.ops) & TABLES[SIMULATOR] and not kernels & TABLES[CPU]
    cuda = {name for name, about in said.items() if "CUDA kernels have it." in about}
    assert cuda and cuda <= set(CUDA.ops) and not cuda & (TABLES[CPU] | TABLES[SIMULATOR])
    host = {name for name, about in said.items() if "Code for CPUs has it." in about}
    assert host and host <= TABLES[CPU] and not host & set(CUDA.ops)


def test_powers_of_minus_infinity_are_those_of_c():
    import numpy as np

    assert op.OPS["pow"].numpy(np.float32(-np.inf), np.float32(0.5)) == np.inf


def test_an_operator_on_vectors_has_its_result_for_every_lane():
    found = {}
    for name, entry in op.OPS.items():
        if entry.result not in ("same", "given"):
            kind = "int32" if entry.takes == "integers" else "float32"
            found[name] = op._result_dtype(entry, (Var("x", f"{kind}x4"),) * (entry.arity or 1), None).lanes
    assert {name: lanes for name, lanes in found.items() if lanes != 1} == {
        name: 4 for name in found if op.OPS[name].effect == "pure"
    }
    assert found["isnan"] == 4 and 1 in found.values()


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: T.ldexp(1.5, 2.0), r"ldexp takes integers as `n`, not float32"),
        (lambda: T.large_uint_imm(T.Var("i", "int32"), 1, dtype="uint64"), r"large_uint_imm takes constants as `low`, not int32"),
        (lambda: T.amx_tile_zero(T.Var("p", "handle"), 1.5), r"amx_tile_zero takes integers as `number`, not float32"),
        (lambda: T.reinterpret("float32"), r"T.reinterpret takes a data type and a value"),
        (lambda: T.tvm_warp_shuffle(), r"tvm_warp_shuffle takes at least 4 arguments"),
    ],
)  # fmt: skip
def test_operands_of_another_kind_are_named(made, error):
    with pytest.raises((TypeError, ValueError), match=error):
        made()
