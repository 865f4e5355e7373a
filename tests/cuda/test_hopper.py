"""What is Hopper's alone, as CUDA C: copies by tensor maps, products of warpgroups, barriers with phases, clusters."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

import tir
from codegen.cuda.driver import Driver
from codegen.cuda.tensor_map import TensorMap, problem
from tests.cuda.test_cuda_driver import Bindings, real
from tir import BuildError, RunError
from tir.script import parse

HEAD = """
@T.prim_func
def f(A: T.Buffer((128, 64), "float16"), C: T.Buffer((64, 256), "float32")):
    T.func_attr({"tir.cluster": [2, 1, 1]})
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 128)
    S = T.alloc_buffer((64, 64), "float16", scope="shared")
    R = T.alloc_buffer((8,), "float16", scope="local")
    D = T.alloc_buffer((4,), "float32", scope="local")
    H = T.alloc_buffer((4,), "float16", scope="local")
    I = T.alloc_buffer((4,), "int32", scope="local")
    T.create_barriers(2)
    BODY
"""
BOX = "T.tensor_map(A, (64, 64), swizzle=128)"
IN_SHARED = "0, 1024, 128, 0"


def built(body: str, arch: str = "sm_90a", kind: str = "cuda"):
    lines = "\n    ".join(body.strip().splitlines())
    return tir.build(parse(HEAD.replace("BODY", lines)), target=f"{kind} -arch={arch}")


def product(
    types: str = '"fp16", "fp16", "fp32"',
    d: str = "D",
    a: str = f"S.data, 0, {IN_SHARED}",
    shape="m64n8k16",
    b=IN_SHARED,
):
    return f'T.ptx_wgmma("{shape}", {types}, {d}.data, 0, {a}, S.data, 0, {b}, bx > 0)'


@pytest.mark.parametrize(
    "body, instruction",
    [
        ("T.ptx_wait_barrier(1, bx % 2)", "mbarrier.try_wait.parity.shared.b64"),
        ("T.ptx_arrive_barrier_cluster(1, bx)", "mbarrier.arrive.release.cluster.shared::cluster.b64 _, "),
        ("T.ptx_fence_barrier_init()", "fence.mbarrier_init.release.cluster;"),
        ("T.ptx_fence_proxy_async()", "fence.proxy.async.shared::cta;"),
        (
            f"T.ptx_cp_async_bulk_tensor(S.data, 0, {BOX}, 0, bx * 64, 0)",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [",
        ),
        (
            f"T.ptx_cp_async_bulk_tensor_multicast(S.data, 0, {BOX}, 0, 3, bx * 64, 0)",
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [",
        ),
        (
            f"T.ptx_cp_async_bulk_tensor_store({BOX}, S.data, 0, bx * 64, 0)",
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [",
        ),
        ("T.ptx_cp_async_bulk_commit_group()", "cp.async.bulk.commit_group;"),
        ("T.ptx_cp_async_bulk_wait_group(1)", "cp.async.bulk.wait_group 1;"),
        ("T.ptx_cp_async_bulk_wait_group_read(0)", "cp.async.bulk.wait_group.read 0;"),
        ("T.ptx_wgmma_fence()", "wgmma.fence.sync.aligned;"),
        ("T.ptx_wgmma_commit_group()", "wgmma.commit_group.sync.aligned;"),
        ("T.ptx_wgmma_wait_group(2)", "wgmma.wait_group.sync.aligned 2;"),
        ("T.ptx_setmaxnreg(40, 0)", "setmaxnreg.dec.sync.aligned.u32 40;"),
        ("T.ptx_setmaxnreg(232, 1)", "setmaxnreg.inc.sync.aligned.u32 232;"),
        ("T.ptx_cluster_arrive()", "barrier.cluster.arrive.release.aligned;"),
        ("T.ptx_cluster_wait()", "barrier.cluster.wait.acquire.aligned;"),
    ],
)
def test_an_operator_is_its_instruction(body, instruction):
    ptx = built(body).source("ptx")
    assert instruction in ptx
    assert re.search(r"\.explicitcluster\s+\.reqnctapercluster 2, 1, 1", ptx)


@pytest.mark.parametrize(
    "call, instruction",
    [
        (product(), "m64n8k16.f32.f16.f16 {%f, %f, %f, %f}, %rd, %rd, p, 1, 1, 0, 0;"),
        (product(b="512, 1024, 128, 1"), "m64n8k16.f32.f16.f16 {%f, %f, %f, %f}, %rd, %rd, p, 1, 1, 0, 1;"),
        (product('"bf16", "bf16", "fp32"'), "m64n8k16.f32.bf16.bf16 {%f, %f, %f, %f}, %rd, %rd, p, 1, 1, 0, 0;"),
        (product('"fp16", "fp16", "fp16"', "H"), "m64n8k16.f16.f16.f16 {%r, %r}, %rd, %rd, p, 1, 1, 0, 0;"),
        (
            product('"tf32", "tf32", "fp32"', shape="m64n8k8"),
            "m64n8k8.f32.tf32.tf32 {%f, %f, %f, %f}, %rd, %rd, p, 1, 1;",
        ),
        (
            product('"e4m3", "e5m2", "fp32"', shape="m64n8k32"),
            "m64n8k32.f32.e4m3.e5m2 {%f, %f, %f, %f}, %rd, %rd, p, 1, 1;",
        ),
        (
            product('"int8", "uint8", "int32"', "I", shape="m64n8k32"),
            "m64n8k32.s32.s8.u8 {%r, %r, %r, %r}, %rd, %rd, p;",
        ),
        (
            product(a="R.data, 0, 0, 0, 0, 0"),
            "m64n8k16.f32.f16.f16 {%f, %f, %f, %f}, {%r, %r, %r, %r}, %rd, p, 1, 1, 0;",
        ),
    ],
)
def test_a_product_of_a_warpgroup_is_its_instruction(call, instruction):
    body = "for i in range(8):\n    R[i] = A[tx, i]\n    H[i // 2] = A[tx, i]\n    D[i // 2] = 0.0\n    I[i // 2] = 0\n"
    sums = "D[0] + T.float32(H[0]) + T.float32(I[0])"
    ptx = built(f"{body}{call}\nT.ptx_wgmma_commit_group()\nT.ptx_wgmma_wait_group(0)\nC[bx, tx] = {sums}").source(
        "ptx"
    )
    found = re.search(r"wgmma\.mma_async\.sync\.aligned\.(.*?;)", ptx)
    assert found is not None
    assert re.sub(r"%(rd|r|f)\d+", r"%\1", found[1]) == instruction


def test_the_compiler_keeps_to_fences_and_waits():
    body = f"for i in range(4):\n    D[i] = 1.0\nT.ptx_wgmma_fence()\n{product()}\nT.ptx_wgmma_commit_group()\nT.ptx_wgmma_wait_group(0)\nC[bx, tx] = D[0] * 2.0"
    order = re.findall(r"mov\.f32|wgmma\.\w+|mul\.f32|add\.f32", built(body).source("ptx"))
    fence, wait = order.index("wgmma.fence"), order.index("wgmma.wait_group")
    assert "mov.f32" in order[:fence] and "mov.f32" not in order[fence:wait]
    assert {"mul.f32", "add.f32"} & {*order[wait:]} and not {"mul.f32", "add.f32"} & {*order[:wait]}


def test_registers_that_are_multiplied_are_held_as_sums_are():
    call = product(a="R.data, 0, 0, 0, 0, 0")
    source = built(f"T.ptx_wgmma_fence()\n{call}\nT.ptx_wgmma_commit_group()\nT.ptx_wgmma_wait_group(0)").source("cuda")
    assert source.count("hold<4>((unsigned*)R);") == source.count("hold<4>(D);") == 2


def test_no_barrier_of_the_block_is_put_between_what_the_program_orders():
    source = built(f"""
if tx < 32:
    for i in range(4):
        T.ptx_wait_barrier(1, i % 2)
        if tx == 0:
            T.ptx_arrive_barrier_expect_tx(0, 8192)
            T.ptx_cp_async_bulk_tensor(S.data, 0, {BOX}, 0, i * 64, 0)
else:
    for i in range(4):
        T.ptx_wait_barrier(0, i % 2)
        {product()}
        T.ptx_wgmma_commit_group()
        T.ptx_wgmma_wait_group(0)
        T.ptx_arrive_barrier(1)
""").source("cuda")
    assert "__syncthreads" not in source and "wgmma_wait<0>" in source


def test_memory_of_the_copy_engine_is_aligned_and_nobody_elses():
    func = parse("""
@T.prim_func
def f(A: T.Buffer((128, 64), "float16"), C: T.Buffer((128, 64), "float16")):
    tx = T.launch_thread("threadIdx.x", 128)
    X = T.alloc_buffer((1032,), "float16", scope="shared.dyn")
    S = T.alloc_buffer((8, 64), "float16", scope="shared.dyn")
    Y = T.alloc_buffer((1032,), "float16", scope="shared.dyn")
    for i in range(8):
        X[i * 128 + tx] = A[tx, i]
    for i in range(8):
        C[tx, i] = X[(i * 128 + tx) ^ 1]
    T.ptx_cp_async_bulk_tensor_store(T.tensor_map(C, (8, 64), swizzle=128), S.data, 0, 0, 0)
    for i in range(8):
        Y[i * 128 + tx] = A[tx, i]
    for i in range(8):
        C[tx, i] = Y[(i * 128 + tx) ^ 1]
""")
    plan = {b.name: b for b in tir.transform.shared_memory_plan(func, target="cuda -arch=sm_90a")}
    assert plan["X"].offset == plan["Y"].offset and plan["S"].offset % 1024 == 0
    assert "__align__(1024)" in tir.build(func, target="cuda -arch=sm_90a").source("cuda")


HANDED_OVER = """
@T.prim_func
def f(A: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 256)
    S = T.alloc_buffer((1024,), "float32", scope="shared")
    R = T.alloc_buffer((1024,), "float32", scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 128)
    T.tvm_storage_sync("shared")
    if tx < 128:
        S[tx] = A[tx]
        R[tx] = A[tx + 128]
        T.ptx_arrive_barrier(0)
    else:
        T.ptx_wait_barrier(0)
        C[tx] = S[255 - tx] + R[255 - tx]
"""


def test_a_kernel_with_transaction_barriers_orders_itself():
    module = tir.build(parse(HANDED_OVER), target="cuda-ptx -arch=sm_90a")
    assert module.source("cuda").count("__syncthreads") == 1
    a, c = np.random.rand(256).astype("float32"), np.zeros(256, "float32")
    for module.order in ("together", "forward", "reverse"):
        module(a, c)
        assert (c[128:] == (a[:128] + a[128:])[::-1]).all()
    plan = tir.transform.shared_memory_plan(parse(HANDED_OVER), target="cuda -arch=sm_90a")
    assert len({b.offset for b in plan}) == 2


@pytest.mark.parametrize(
    "body, arch, reason",
    [
        (
            f"T.ptx_cp_async_bulk_tensor(S.data, 0, {BOX}, 0, 0, 0)",
            "sm_80",
            r"maps of tensors.* need sm_90 or later, not sm_80",
        ),
        ("T.ptx_cluster_wait()", "sm_80", "clusters.* need sm_90 or later"),
        ("T.ptx_wgmma_fence()", "sm_90", r"\(wgmma_fence\) need sm_90a itself, not sm_90"),
        ("T.ptx_setmaxnreg(40, 0)", "sm_100a", "need sm_90a itself, not sm_100a"),
    ],
)
def test_other_architectures_are_refused(body, arch, reason):
    with pytest.raises(BuildError, match=reason):
        built(body, arch)


@pytest.mark.parametrize(
    "body, reason",
    [
        (product(shape="m64n12k16"), "no shape 'm64n12k16' of f16; it is m64n.k16, n a multiple of 8 up to 256"),
        (product(shape="m64n8k8"), "no shape 'm64n8k8' of f16"),
        (product('"int8", "int8", "int32"', "I", shape="m64n40k32"), r"n a multiple of 16 \(or 8, 24\) up to 256"),
        (product('"fp16", "bf16", "fp32"'), "no product of f16 and bf16"),
        (product('"fp32", "fp32", "fp32"'), "no product of f32 and f32; there are fp16"),
        (product('"bf16", "bf16", "fp16"'), "summed as f32, not f16"),
        (product('"int8", "int8", "int32"', "I", shape="m64n8k32", b="0, 1024, 128, 1"), "only matrices of 16 bits are transposed"),
        (product(b="0, 1024, 48, 0"), "no swizzle of 48 bytes"),
        (product(shape="m64n16k16"), "`D` has 4 registers of 32 bits, and the product has 8 sums"),
        (product().replace("D.data, 0", "D.data, 2"), "has 4 registers .* 4 sums from register 2 on"),
        (product(d="I"), "`I` is int32, and the product has sums of float32"),
        (product(d="S"), "`S` is float16, and"),
        (product(d="S").replace("fp32", "fp16"), "`S.*` is in shared memory; the sums are registers"),
        ("T.ptx_wait_barrier(0, 0.5)", "`T.float32.0.5.` is an argument that is an integer"),
        ("T.ptx_arrive_barrier_cluster(0, 2)", "the rank is 2, .* clusters of 2 blocks: below 2 it is"),
        (f"T.ptx_cp_async_bulk_tensor_multicast(S.data, 0, {BOX}, 0, 5, 0, 0)", "the mask is 5, .* below 4 it is"),
        ('T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A.data, "half", 0, 8, 1, 8), 0, 0)', "the tensor map .*half"),
        (product().replace("S.data, 0, 0, 1024, 128, 0, bx", "R.data, 0, 0, 1024, 128, 0, bx"), "`R.*` is in local memory; it takes shared"),
        ("T.ptx_setmaxnreg(33, 0)", "33 registers; a multiple of 8 from 24 to 256"),
        ("T.ptx_wgmma_wait_group(bx)", "the number of groups is a constant, not `bx`"),
        (f"T.ptx_cp_async_bulk_tensor(S.data, 0, {BOX}, 0, 0)", "1 coordinates, and the tensor map has 2 axes"),
        ("T.ptx_cp_async_bulk_tensor(S.data, 0, A.data, 0, 0)", "`A.*` is no T.tensor_map"),
        (f"T.ptx_cp_async_bulk_tensor(R.data, 0, {BOX}, 0, 0, 0)", "`R.*` is in local memory; it takes shared memory"),
        ("T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, bx + 1)), 0, 0, 0)", "at the launch, when `bx` is not known"),
        ("T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(S, (64, 64)), 0, 0, 0)", "the pointer of a whole buffer"),
        ("T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, 64), swizzle=64), 0, 0, 0)", "128 bytes along the innermost"),
    ],
)  # fmt: skip
def test_what_the_instructions_do_not_have_is_refused(body, reason):
    with pytest.raises(BuildError, match=reason):
        built(body)


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [0], [], [4, 4], 2, "'2'", ["x"]])
def test_a_cluster_has_up_to_three_extents(sizes):
    func = parse(HEAD.replace("BODY", "T.evaluate(0)").replace("[2, 1, 1]", str(sizes)))
    with pytest.raises(BuildError, match='the attribute "tir.cluster" is .* along x, y and z, at most 8 in all'):
        tir.build(func, target="cuda -arch=sm_90a")


def test_a_grid_is_of_whole_clusters():
    module = tir.build(
        parse(HEAD.replace("BODY", "C[bx, tx] = 0.0").replace("[2, 1, 1]", "[4]")), target="cuda -arch=sm_90a"
    )
    module.use_driver(Encoder())
    with pytest.raises(RunError, match=r"a grid of \(2, 1, 1\) blocks cannot be divided into clusters of \(4, 1, 1\)"):
        module(OnDevice(np.zeros((128, 64), np.float16)), OnDevice(np.zeros((64, 256), np.float32)))


def test_a_program_in_c_launches_clusters(tmp_path):
    module = built("C[bx, tx] = 0.0\nT.ptx_cluster_arrive()\nT.ptx_cluster_wait()")
    module.save(tmp_path / "f.c")
    assert "cuLaunchKernel" in (tmp_path / "f.c").read_text()


def test_what_the_copy_engine_writes_is_not_promised_to_stay():
    source = built(f"""
T.ptx_cp_async_bulk_tensor_store({BOX}, S.data, 0, 0, 0)
C[bx, tx] = A[tx, 0]
""").source("cuda")
    assert re.search(r"\(\s*half\* A,\s+float\* C,", source)


def test_what_the_copy_engine_reads_is_not_written():
    source = built(f"T.ptx_cp_async_bulk_tensor(S.data, 0, {BOX}, 0, 0, 0)\nC[bx, tx] = 0.0").source("cuda")
    assert "const half* __restrict__ A," in source


@pytest.mark.parametrize(
    "body, reason",
    [
        ("T.create_barriers(1)", "the kernel has 2 barriers already"),
        ("T.ptx_arrive_barrier(2)", "there is no barrier 2: T.create_barriers made 2"),
    ],
)
def test_barriers_are_created_once(body, reason):
    with pytest.raises(BuildError, match=reason):
        built(body)


@pytest.mark.parametrize("count", [0, -1])
def test_a_kernel_has_one_barrier_or_more(count):
    with pytest.raises(BuildError, match=f"create_barriers: {count} barriers"):
        tir.build(parse(HEAD.replace("(2)", f"({count})").replace("BODY", "T.evaluate(0)")), "cuda -arch=sm_90a")


def test_a_kernel_without_barriers_is_told_to_create_them():
    with pytest.raises(
        BuildError, match="barrier `0` is used, and the kernel has none: begin it with T.create_barriers"
    ):
        tir.build(
            parse(HEAD.replace("T.create_barriers(2)", "").replace("BODY", "T.ptx_wait_barrier(0)")),
            "cuda -arch=sm_90a",
        )


# ---------------------------------------------------------------- tensor maps


@pytest.mark.parametrize(
    "given, reason",
    [
        (("float16", (8, 64), (64, 1), (8, 64), 128), ""),
        (("float16", (8, None), (None, 1), (8, 64), 128), ""),
        (("float16", (8, 64), (60, 1), (8, 64), 128), "stride of axis 0 is 120 bytes; it is a multiple of 16"),
        (("float16", (8, 64), (64, 2), (8, 64), 128), "stride of the innermost axis is 2; it is 1"),
        (("float16", (8, 64), (64, 1), (8, 128), 128), "256 bytes along the innermost axis; with a swizzle of 128 bytes at most"),
        (("float16", (8, 64), (64, 1), (8, 12), 0), "24 bytes along the innermost axis; a multiple of 16 is copied"),
        (("float16", (512, 64), (64, 1), (512, 64), 0), "1 to 256 elements"),
        (("float16", (8, 64), (64, 1), (8, 64), 16), "swizzle is of 16 bytes"),
        (("float16", (0, 64), (64, 1), (8, 64), 0), "an axis has 0 elements"),
        (("float16x2", (8, 64), (64, 1), (8, 64), 0), "its elements are float16x2"),
        (("int8", (2,) * 6, (32,) * 6, (2,) * 6, 0), "6 axes; at most 5"),
    ],
)  # fmt: skip
def test_what_the_copy_engine_takes(given, reason):
    found = problem(*given)
    assert reason in found if reason else found == ""


def test_a_map_is_made_by_the_driver_innermost_axis_first():
    bindings = Bindings()
    made = SimpleNamespace(opaque=[real.cuuint64_t(7)] * 16)
    bindings._cuTensorMapEncodeTiled = lambda *_: (made,)
    bindings.FREE = (*Bindings.FREE, "cuTensorMapEncodeTiled")
    for name in ("DataType", "Swizzle", "Interleave", "L2promotion", "FloatOOBfill"):
        setattr(bindings, f"CUtensorMap{name}", getattr(real, f"CUtensorMap{name}"))
    bindings.cuuint64_t, bindings.cuuint32_t = real.cuuint64_t, real.cuuint32_t
    words = Driver(bindings=bindings).encode_tensor_map(TensorMap("bfloat16", (100, 64), (72, 1), (32, 16), 32), 4096)
    assert words == (7).to_bytes(8, "little") * 16
    ((kind, rank, address, sizes, strides, box, steps, _, swizzle, _, _),) = bindings.named("cuTensorMapEncodeTiled")
    assert (kind, rank, address, swizzle) == (
        real.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        2,
        4096,
        real.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
    )
    assert [[int(n) for n in part] for part in (sizes, strides, box, steps)] == [[64, 100], [144], [16, 32], [1, 1]]


class Encoder:
    """A device that takes down the maps that it is asked for, and launches nothing."""

    def __init__(self):
        self.arch, self.maps, self.launched = "sm_90a", [], []

    def activate(self):
        return None

    def load(self, image):
        return None

    def unload(self, module):
        pass

    def function(self, module, name, dynamic_shared):
        return name

    def encode_tensor_map(self, described, address):
        self.maps.append((described, address))
        return bytes([len(self.maps)] * 128)

    def launch(self, function, grid, block, shared, stream, params):
        import ctypes

        slots = ctypes.cast(params, ctypes.POINTER(ctypes.c_void_p))
        self.launched.append(ctypes.string_at(slots[2], 128))


SYMBOLIC = """
@T.prim_func
def f(a: T.handle, n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float16")
    tx = T.launch_thread("threadIdx.x", 32)
    S = T.alloc_buffer((64, 64), "float16", scope="shared")
    T.create_barriers(1)
    T.ptx_cp_async_bulk_tensor(S.data, 0, T.tensor_map(A, (64, 64), 128), 0, 0, 0)
"""


class OnDevice:
    """An array in memory that the device may use."""

    def __init__(self, array, address=None):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "strides": array.strides,
            "data": (array.ctypes.data if address is None else address, False),
            "version": 3,
        }


def test_a_map_is_of_the_shapes_and_the_address_of_a_call():
    module, device = tir.build(parse(SYMBOLIC), target="cuda -arch=sm_90a"), Encoder()
    module.use_driver(device)
    sizes = len(parse(SYMBOLIC).params)
    assert sizes == 2
    for address, shape in ((4096, (8, 64)), (4096, (8, 64)), (8192, (8, 64)), (8192, (100, 80))):
        module(OnDevice(np.zeros(shape, np.float16), address), shape[1])
    first = TensorMap("float16", (8, 64), (64, 1), (64, 64), 128)
    assert device.maps == [
        (first, 4096),
        (first, 8192),
        (TensorMap("float16", (100, 80), (80, 1), (64, 64), 128), 8192),
    ]


@pytest.mark.parametrize(
    "shape, address, reason",
    [
        ((8, 60), 4096, "`A` cannot be copied by tensor maps: the stride of axis 0 is 120 bytes"),
        ((8, 64), 4104, "`A` starts at an address that is not a multiple of 16 bytes, as tensor maps need"),
    ],
)
def test_a_call_refuses_what_the_copy_engine_does_not_take(shape, address, reason):
    module = tir.build(parse(SYMBOLIC), target="cuda -arch=sm_90a")
    module.use_driver(Encoder())
    with pytest.raises(RunError, match=reason):
        module(OnDevice(np.zeros(shape, np.float16), address), shape[1])
