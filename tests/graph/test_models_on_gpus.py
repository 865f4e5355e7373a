"""Models compiled for GPUs: on the simulator, on the executor of PTX, and launches on a driver of the test's own."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest

import tir
from codegen.cuda.device_arrays import DeviceArray
from codegen.cuda.module import _nvrtc_is_here
from tests.cuda.test_cuda_runtime import RecordingDriver
from tir import BuildError, RunError
from tir.graph import Builder, compile_graph, quantize
from tir.graph.arrays import DeviceArrays
from tir.script import ir as I
from tir.script import tir as T

needs_nvrtc = pytest.mark.skipif(not _nvrtc_is_here(), reason="no NVRTC")
EVERY = ["interpreter", "llvm", "cuda-sim", pytest.param("cuda-ptx", marks=needs_nvrtc)]


@I.ir_module
class Nested:
    @T.prim_func
    def more(A: T.Buffer((4,), "int32"), n: T.int32):
        for i in range(4):
            A[i] += n

    @T.prim_func
    def main(A: T.Buffer((4, 4), "int32"), m: T.int64):
        Nested.more(T.address_of(A[1, 0]), T.int32(5))
        if m > 2:
            Nested.more(A.data, T.int32(1))

    @T.prim_func
    def top(A: T.Buffer((64,), "uint8"), m: T.int64):
        Nested.main(A.data, m)
        Nested.more(T.address_of(A[48]), T.int32(3))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def network():
    """A convolution, a product and a softmax; the first sizes of ``x`` and of the results are the batch."""
    b = Builder()
    x = b.input("x", (2, 3, 6, 6))
    h = b.call("nn.relu", b.call("nn.conv2d", x, b.constant(numbers(4, 3, 3, 3), "w")))
    h = b.call("nn.dense", b.call("reshape", h, (2, 64)), b.constant(numbers(10, 64, seed=1), "v"))
    return b.graph({"y": b.call("nn.softmax", h), "h": h})


@functools.cache
def compiled(target):
    """The network for a target, of tests that neither change it nor where its arrays are."""
    return compile_graph(network(), target)


X = numbers(2, 3, 6, 6, seed=2)


# ---------------------------------------------------------------- functions that call functions


@pytest.mark.parametrize("target", EVERY)
def test_a_function_launches_what_those_that_it_calls_launch(target):
    module = tir.build(Nested, target)
    a, b = np.zeros((4, 4), "int32"), np.zeros(64, "uint8")
    module["main"](a, 3)
    module["top"](b, 3)
    np.testing.assert_array_equal(a.sum(1), [4, 20, 0, 0])
    np.testing.assert_array_equal(b.view("int32").reshape(4, 4).sum(1), [4, 20, 0, 12])


def test_calls_are_replaced_by_launches_and_kernels_are_made_once():
    lowered = tir.lower(Nested, target="cuda")
    assert list(lowered) == ["more", "more_kernel", "main", "top"]
    assert lowered["top"].script().count("tvm_call_packed") == 3 and "call_global" not in lowered["top"].script()


def module_of(called: str, call: str):
    text = f"""
@I.ir_module
class M:
{called}
    @T.prim_func
    def main(A: T.Buffer((8,), "int32")):
        {call}
"""
    return tir.script.parse(text)


LOOP = "        for i in range(4):\n            A[i] += 1\n"


@pytest.mark.parametrize(
    ("called", "call", "error"),
    [
        (f'    @T.prim_func\n    def f(A: T.Buffer((4,), "int32")):\n{LOOP}', "M.f(A.data, 1)", "has 2 arguments; it takes 1"),
        (f'    @T.prim_func\n    def f(A: T.Buffer((4,), "int32")):\n{LOOP}', 'T.call_global("g", A.data)', "calls `g`, which is no function"),
        (f'    @T.prim_func\n    def f(a: T.handle):\n        n = T.int32()\n        A = T.match_buffer(a, (n,), "int32")\n{LOOP}', "M.f(A.data)", "the size n is read off an array"),
        ('    @T.prim_func\n    def f(n: T.int32) -> T.int32:\n        for i in range(n):\n            if i * i > n:\n                T.ret(i)\n        T.ret(n)\n', "M.f(1)", "gives a value"),
        ("", "M.main(A.data)", "main calls itself"),
        ('    @T.prim_func\n    def f(A: T.Buffer((4,), "int32")):\n        if A[0] > 1:\n            for i in T.thread_binding(4, thread="threadIdx.x"):\n                A[i] += 1\n', "M.f(A.data)", "reads or writes `A` outside of kernels"),
    ],
)  # fmt: skip
def test_calls_that_no_launch_can_replace_are_refused(called, call, error):
    with pytest.raises(BuildError, match=error):
        tir.lower(module_of(called, call), target="cuda")


@needs_nvrtc
def test_a_part_of_a_buffer_that_is_not_aligned_as_a_kernel_needs_is_refused():
    @I.ir_module
    class M:
        @T.prim_func
        def f(A: T.Buffer((64,), "float32")):
            for i in T.thread_binding(16, thread="threadIdx.x"):
                for j in T.vectorized(4):
                    A[i * 4 + j] += T.float32(1)

        @T.prim_func
        def main(A: T.Buffer((80,), "float32"), k: T.int32):
            M.f(T.address_of(A[k]))

    module = tir.build(M, "cuda-ptx")
    a = np.zeros(80, "float32")
    module["main"](a, 4)
    assert a.sum() == 64 and a[4:68].all()
    with pytest.raises(RunError, match="begins 4 bytes into a buffer, which is no multiple of 16 bytes"):
        module["main"](a, 1)


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("target", EVERY[2:])
def test_a_model_computes_on_a_gpu_what_it_computes_on_the_cpu(target):
    model = compiled(target)
    for got, want in zip(model(X), compile_graph(network())(X)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert [k.kernel for k in model.profile(X, repeat=1).kernels if k.seconds > 0]


@pytest.mark.parametrize("bits", ["int8", "int4"])
def test_what_constants_determine_is_computed_by_the_cpu(bits):
    b = Builder()
    x = b.input("x", (3, 64))
    graph = quantize(b.graph({"y": b.call("matmul", x, b.constant(numbers(64, 32), "w"))}), bits)
    model = compile_graph(graph, "cuda-sim")
    assert [len(f.params) for f in (model.module.ir["matmul"],)] == [3], "weights as floats, made when it was compiled"
    x = numbers(3, 64, seed=1)
    np.testing.assert_allclose(model(x), compile_graph(graph)(x), rtol=1e-4, atol=1e-4)


def test_sizes_that_are_symbols_and_the_bytes_of_a_workspace():
    b = Builder()
    x = b.input("x", ("n", 6))
    model = compile_graph(
        b.graph({"y": b.call("nn.softmax", b.call("matmul", x, b.constant(numbers(6, 5), "w")))}), "cuda-sim"
    )
    assert model.module["workspace_bytes"](3) >= 3 * 5 * 4
    for rows in (1, 3, 7):
        x = numbers(rows, 6)
        np.testing.assert_allclose(model(x).sum(1), np.ones(rows), rtol=1e-5)


# ---------------------------------------------------------------- arrays on the device


@pytest.fixture(scope="module")
def on_device():
    """A model whose arrays are in the memory of the executor of PTX, as they are on a device."""
    if not _nvrtc_is_here():
        pytest.skip("no NVRTC")
    model = compile_graph(network(), "cuda-ptx")
    model.place = DeviceArrays(model.module)
    return model


def test_results_are_where_inputs_are(on_device):
    want = compile_graph(network())(X)
    for got, wanted in zip(on_device(X), want):
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    there = on_device.module.array(X)
    made = on_device(there)
    out = [on_device.module.array(np.zeros((2, 10), "float32")) for _ in range(2)]
    assert on_device(x=there, out=out) is out
    for got, kept, wanted in zip(made, out, want):
        assert isinstance(got, DeviceArray)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got.numpy(), kept.numpy())


def test_weights_are_copied_to_the_device_once(on_device):
    first = on_device.place.held(on_device.weights)
    on_device(X)
    assert on_device.place.held(on_device.weights) is first


@pytest.mark.parametrize(
    ("given", "out", "error"),
    [
        (X[0], None, r"input x: float32\[2, 3, 6, 6\]: the array has 3 dimensions"),
        (X.astype("float64"), None, "the array is of float64"),
        (X, [np.zeros((2, 10), "float32")] * 2, "out for y.* is no contiguous array on the device"),
        (X, "x", "out for y.*the array has 4 dimensions"),
        (X, "same", "out for y.*shares memory with another argument"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_there_too(on_device, given, out, error):
    there = on_device.module.array(given)
    if isinstance(out, str):
        out = [there if out == "x" else on_device.module.array(np.zeros((2, 10), "float32"))] * 2
    with pytest.raises(RunError, match=error):
        on_device(there, out=out)


class Strided:
    """A transposed tensor on the device."""

    def __init__(self, held):
        self.__cuda_array_interface__ = {
            **held.__cuda_array_interface__,
            "shape": (2, 3, 6, 6),
            "strides": (432, 144, 4, 24),
        }


def test_an_array_on_the_device_that_is_not_contiguous_is_refused(on_device):
    with pytest.raises(RunError, match="input x.*is not contiguous; copy it"):
        on_device(Strided(on_device.module.array(X)))


def test_a_pickled_model_finds_its_device_again():
    model = pickle.loads(pickle.dumps(compiled("cuda-sim")))
    np.testing.assert_allclose(model(X)[0], compile_graph(network())(X)[0], rtol=1e-4, atol=1e-5)


def test_state_is_updated_on_the_device(on_device):
    b = Builder()
    x, total = b.input("x", (4,)), b.input("total", (4,))
    model = compile_graph(
        b.graph({"total": b.call("add", total, x), "y": b.call("exp", x)}), "cuda-ptx", state=["total"]
    )
    model.place = DeviceArrays(model.module)
    state = model.new_state()
    for _ in range(3):
        model(np.ones(4, "float32"), state=state)
    np.testing.assert_array_equal(state["total"].numpy(), np.full(4, 3, "float32"))
    with pytest.raises(RunError, match="state total.* is no contiguous array on the device"):
        model(np.ones(4, "float32"), state={"total": np.zeros(4, "float32")})


@pytest.fixture
def recorded(monkeypatch):
    """A device that keeps what is launched."""
    if not _nvrtc_is_here():
        pytest.skip("no NVRTC")
    made = RecordingDriver()
    monkeypatch.setattr("codegen.cuda.module.driver", lambda number: made)
    return made


def test_kernels_are_launched_with_pointers_into_weights_and_workspace(recorded):
    model = compile_graph(network(), "cuda -arch=sm_80")
    recorded.param_types = {n: t.params for n, t in model.module.texts.items()}
    model(X)
    weights = model.place.held(model.weights).address
    assert [launch["name"] for launch in recorded.launches] == [f"{k}_kernel" for k in model.kernels]
    pointers = {p for launch in recorded.launches for p in launch["values"]}
    assert {p - weights for p in pointers if 0 <= p - weights < model.weights.nbytes} == {0, 448}
    count = len(recorded.launches)
    found = model.profile(X, repeat=2)
    assert len(recorded.launches) == count + 3 * len(model.kernels) and len(found.seconds_of_calls) == len(
        model.kernels
    )
    assert recorded.launches[-1]["values"][:-1] == recorded.launches[count - 1]["values"][:-1]


def test_programs_run_on_copies_for_a_device(recorded, tmp_path, capsys):
    from tir.cli import main
    from tir.testing import assert_same_result

    program = tir.library.elementwise.scale_add(256)
    file = tmp_path / "k.tir"
    file.write_text(program.script())
    assert main(["run", str(file), "--target", "cuda -arch=sm_80"]) == 0 and len(recorded.launches) == 1
    assert main(["bench", str(file), "--target", "cuda -arch=sm_80", "--number", "2", "--repeat", "1"]) == 0
    assert len(recorded.launches) == 4
    with pytest.raises(AssertionError, match=r"cuda -arch=sm_80: B\[0\]"):  # this device computes nothing
        assert_same_result(program, program, [np.ones(256, "float32"), np.zeros(256, "float32")], ["cuda -arch=sm_80"])
    capsys.readouterr()


@needs_nvrtc
def test_the_output_says_for_what_a_model_is_built(tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="the package onnx has no wheel for this Python")
    from small_models import small_model

    from tir.cli import main

    onnx.save(small_model(), tmp_path / "net.onnx")
    assert main(["build", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "net.zip")]) == 0
    assert tir.load(tmp_path / "net.zip").module.target.kind == "cuda" and "wrote" in capsys.readouterr().out


def test_a_kind_of_target_that_runs_no_models_is_refused(monkeypatch):
    monkeypatch.setattr("tir.graph.model.KINDS", ("llvm", "cuda"))
    with pytest.raises(BuildError, match="models are compiled for llvm, cuda, not for interpreter"):
        compile_graph(network(), "interpreter")


@pytest.mark.parametrize("given", [None, "other.bin"])
def test_a_saved_model_is_read_without_a_compiler_and_runs(recorded, tmp_path, monkeypatch, given):
    model = compiled("cuda -arch=sm_80")
    weights = None if given is None else tmp_path / given
    model.save(tmp_path / "net.zip", weights=weights)
    assert (tmp_path / (given or "net.weights")).stat().st_size == model.weights.nbytes
    monkeypatch.setattr("codegen.cuda.nvrtc.compile_cubin", None)
    loaded = tir.load(tmp_path / "net.zip")
    recorded.param_types = {n: t.params for n, t in loaded.module.texts.items()}
    loaded(X)
    assert [launch["name"] for launch in recorded.launches] == [f"{k}_kernel" for k in model.kernels]
    assert [str(p) for p in (*loaded.inputs, *loaded.outputs)] == [str(p) for p in (*model.inputs, *model.outputs)]
    np.testing.assert_array_equal(loaded.weights, model.weights)
    pickle.loads(pickle.dumps(loaded))
    (tmp_path / (given or "net.weights")).write_bytes(bytes(model.weights.nbytes))
    with pytest.raises(BuildError, match="are not the weights of net.zip"):
        tir.load(tmp_path / "net.zip")


@pytest.mark.parametrize(
    ("name", "more", "error"),
    [
        ("net.so", {}, r"cannot save to 'net.so': a model for cuda is a .zip.*model.module.save\('net.c'\)"),
        ("net.zip", {"header": "net.h"}, "header, threads, checks, cmake and levels are for models compiled for llvm"),
        ("net.zip", {"levels": ["avx2"]}, "are for models compiled for llvm"),
    ],
)
@needs_nvrtc
def test_what_a_model_for_a_gpu_is_not_saved_as_is_refused(tmp_path, name, more, error):
    with pytest.raises(BuildError, match=error):
        compiled("cuda -arch=sm_80").save(tmp_path / name, **more)
