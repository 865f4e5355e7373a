"""The arithmetic of `make bench-gpu`, with a device that answers in the test."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import gpu
from codegen.cuda.driver import has_device
from tests.cuda.test_cuda_runtime import RecordingDriver
from tests.gpu_examples import NAMES, load


class Device(RecordingDriver):
    """An H100-like chip on which every launch takes a millisecond."""

    arch = "sm_90a"
    FIGURES = {"MULTIPROCESSOR_COUNT": 132, "CLOCK_RATE": 1_980_000}  # kHz

    def attribute(self, name: str) -> int:
        return self.FIGURES[name]


def test_peaks_of_a_chip():
    device = Device()
    assert gpu.peak_rate(device, "float32") == pytest.approx(66.9e12, rel=1e-3)
    assert gpu.peak_rate(device, "float16") == pytest.approx(1070e12, rel=1e-3)
    assert gpu.peak_rate(SimpleNamespace(arch="sm_300"), "float32") is None


def test_ratios():
    row = gpu.Row.of("softmax", 2e-3, bytes_moved=8 * 10**9, copy=4e12, torch_seconds=1e-3, compile_s=0.2)
    assert row == gpu.Row("softmax", 2.0, None, 1.0, 0.5, None, 0.2)
    row = gpu.Row.of("sgemm", 1e-3, bytes_moved=5, copy=4e12, flops=3e10, peak=60e12)
    assert row == gpu.Row("sgemm", 1.0, pytest.approx(30.0), None, None, pytest.approx(0.5), None)


def test_operations_of_a_product():
    a, b, c = np.zeros((8, 16)), np.zeros((16, 4)), np.zeros((8, 4))
    assert gpu.flops("sgemm", [a, b, c]) == 2 * 8 * 16 * 4
    assert gpu.flops("transpose", [a, c]) == 0
    image, weights, pixels = np.zeros((2, 5, 5, 8)), np.zeros((3 * 3 * 8, 4)), np.zeros((2 * 3 * 3, 4))
    assert gpu.flops("conv2d", [image, weights, pixels]) == 2 * (2 * 3 * 3) * (3 * 3 * 8) * 4


def test_tiles_that_are_measured(monkeypatch):
    monkeypatch.setattr(gpu, "multiprocessors", lambda: 132)
    assert gpu.variants("softmax") == [{}] and gpu.label("softmax", {}) == "softmax"
    assert gpu.variants("stream_k_gemm") == [{"blocks": 132}, {"blocks": 264}]
    labels = [gpu.label("mma_gemm", options) for options in gpu.variants("mma_gemm")]
    assert "mma_gemm tile=128x128 warps=2x2 depth=32 stages=4" in labels and len(set(labels)) == len(labels) > 3


class Tensor(np.ndarray):
    """As much of torch's tensors as the convolution's layout takes."""

    def permute(self, *axes):
        return self.transpose(axes)

    def contiguous(self, memory_format):
        assert memory_format == "channels_last"
        return self


def test_torch_gets_the_same_convolution():
    def conv2d(x, w):  # as torch's: images (batch, channels, rows, columns), weights (out, channels, rows, columns)
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
        return np.einsum("bcijyx,ocyx->boij", windows, w)

    torch = SimpleNamespace(
        channels_last="channels_last",
        nn=SimpleNamespace(functional=SimpleNamespace(conv2d=conv2d)),
        backends=SimpleNamespace(cudnn=SimpleNamespace(benchmark=False)),
    )
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((2, 6, 6, 4)), rng.standard_normal((3 * 3 * 4, 5))
    got = gpu.convolution(image.view(Tensor), weights.view(Tensor), torch)()
    want = load("conv2d").reference(image, weights)
    np.testing.assert_allclose(got.transpose(0, 2, 3, 1).reshape(-1, 5), want)


def test_the_table_leaves_out_what_does_not_apply():
    text = gpu.table([gpu.Row("copy", 1.5, of_copy=0.987), gpu.Row("sgemm", 2.0, tflops=50.0)])
    head, first, second = text.splitlines()
    assert first.split() == ["copy", "1.5", "0.987"] and second.split() == ["sgemm", "2", "50"]
    assert head.index("of copy") == first.index("0.987") and head.index("TFLOP/s") == second.index("50")


def test_a_run_on_a_device_of_the_test(monkeypatch, tmp_path, capsys):
    import json

    import tir
    from codegen.cuda.module import CUDAModule

    device = Device()
    small = SimpleNamespace(full=load("vector_add").small)
    real = tir.build
    monkeypatch.setattr(gpu, "has_device", lambda: True)
    monkeypatch.setattr(gpu, "NAMES", ["vector_add"])
    monkeypatch.setattr(gpu, "load", lambda name: small)
    monkeypatch.setattr(gpu, "_torch", lambda: None)
    monkeypatch.setattr(gpu, "runs_here", lambda name: True)
    monkeypatch.setattr(gpu, "copy_rate", lambda: 1.2e7)  # 12 KB in a millisecond
    monkeypatch.setattr(gpu, "OUT", tmp_path)
    monkeypatch.setenv("TIR_CACHE", "1")

    def build(program, target):
        made = real(program, target="cuda -arch=sm_90a")
        assert isinstance(made, CUDAModule)
        return made.use_driver(device)

    monkeypatch.setattr(gpu.tir, "build", build)
    gpu.main()
    found = json.loads((tmp_path / "gpu.json").read_text())
    (row,) = found["rows"]
    assert row["kernel"] == "vector_add" and row["ms"] == pytest.approx(1.0)
    assert row["of_copy"] == pytest.approx(1.0) and row["compile_s"] > 0 and found["call µs"] > 0
    assert "vector_add" in capsys.readouterr().out


def test_without_a_device_it_says_so(monkeypatch):
    if has_device():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(SystemExit, match="bench-gpu needs a CUDA device, and there is none here"):
        gpu.main()


def test_every_example_has_a_limit_to_be_measured_by():
    bounded = {"softmax", "layer_norm", "transpose", "reductions", "vector_add", "paged_decode"}
    assert set(gpu.PRODUCTS) | bounded == set(NAMES)
