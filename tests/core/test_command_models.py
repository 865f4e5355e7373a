"""The verbs of ``tir`` on models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_models import small_model

import tir
from tir.cli.command_line import main

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    onnx.save(small_model(), "model.onnx")
    onnx.save(small_model("N"), "open.onnx")
    onnx.save(small_model(last="Frobnicate"), "unknown.onnx")
    onnx.save(small_model(None), "unnamed.onnx")
    return tmp_path


@pytest.fixture
def tir_(capsys):
    def run(line: str) -> tuple[int, str, str]:
        status = main(line.split())
        return (status, *capsys.readouterr())

    return run


def test_a_model_is_shown_as_graph_as_kernels_and_as_one_program(tir_):
    assert "%conv2d: float32[1, 4, 16, 16] = nn.conv2d(" in tir_("show model.onnx --graph")[1]
    found = json.loads(tir_("show model.onnx --fused --json")[1])
    assert [k["kernel"] for k in found["kernels"]] == ["conv2d_relu", "mean", "matmul", "softmax"]
    model = tir.compile("model.onnx")
    assert (found["weights_bytes"], found["workspace_bytes"]) == (model.weights_bytes, model.workspace_bytes)
    assert found["weights_bytes"] >= 4 * (4 * 27 + 40) and found["kernels"][0]["writes"] == 4 * 4 * 256
    status, text, _ = tir_("show model.onnx")
    assert status == 0 and tir.script.from_source(text)["main"].attrs["global_symbol"] == "main"


def test_a_model_runs_on_given_arrays_as_onnx_says(tir_):
    x = np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype("float32")
    np.save("x.npy", x)
    np.savez("x.npz", data=x)
    status, out, err = tir_("run model.onnx --input data=x.npy --output out=y.npy --check")
    assert (status, err) == (0, "") and out.endswith("llvm and onnx.reference agree\n")
    assert tir_("run model.onnx --inputs x.npz --outputs y.npz")[0] == 0
    from onnx.reference import ReferenceEvaluator

    (expected,) = ReferenceEvaluator(small_model()).run(None, {"data": x})
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-4)
    np.testing.assert_array_equal(np.load("y.npz")["out"], np.load("y.npy"))


def test_open_sizes_are_given(tir_):
    status, out, _ = tir_("run open.onnx --shape data=2,3,16,16 --check --json")
    assert status == 0 and json.loads(out)["results"]["out"]["shape"] == [2, 10]
    status, _, err = tir_("run open.onnx")
    assert status == 1 and "--shape data=1,3,16,16" in err and err.count("\n") == 1
    assert tir_("ops open.onnx")[0] == 0
    assert tir_("source open.onnx")[0] == 0  # a program for any size


def test_a_model_with_named_sizes_is_built_once_for_all(tir_):
    assert tir_("build open.onnx -o m.so --header m.h")[0] == 0
    assert "int32_t m(const float *data, float *out, int32_t N);" in Path("m.h").read_text()
    for n in (1, 5):
        x = np.random.default_rng(n).standard_normal((n, 3, 16, 16)).astype("float32")
        np.save("x.npy", x)
        assert tir_("run m.so --input data=x.npy --output out=m.npy")[0] == 0
        assert tir_("run open.onnx --input data=x.npy --output out=y.npy --check")[0] == 0
        np.testing.assert_array_equal(np.load("m.npy"), np.load("y.npy"))
    assert tir_("run m.so --shape data=2,3,16,16 --json")[0] == 0
    status, _, err = tir_("run m.so")
    assert status == 1 and err == "input 'data' has shape [N, 3, 16, 16]: give its sizes, as --shape data=1,3,16,16\n"
    found = json.loads(tir_("show open.onnx --fused --json")[1])
    assert found["kernels"][0]["writes"] == "N * 4096" and "+ N * 4096" in found["workspace_bytes"]
    assert "N * 4096" in tir_("show open.onnx --fused")[1]


def test_a_model_is_checked_and_timed(tir_, monkeypatch):
    status, out, _ = tir_("check model.onnx")
    assert status == 0 and out == "ok     graph\nok     well formed\nok     onnx.reference\n"
    assert tir_("bench model.onnx --number 1 --repeat 1")[0] == 0
    status, out, _ = tir_("bench model.onnx --kernels --repeat 1 --json")
    assert status == 0 and {k["kernel"] for k in json.loads(out)["kernels"]} == {
        "conv2d_relu",
        "mean",
        "matmul",
        "softmax",
    }
    monkeypatch.setattr("tir.cli.models.RTOL", -1.0)  # so that nothing is close enough
    monkeypatch.setattr("tir.cli.models.ATOL", 0.0)
    status, out, _ = tir_("check model.onnx")
    assert status == 1 and "wrong  onnx.reference\n       compiled: out[0, 0] is" in out
    assert tir_("run model.onnx --check")[0] == 1


def test_all_operators_that_are_unknown_are_one_table(tir_):
    status, out, err = tir_("ops unknown.onnx")
    assert status == 1 and err == "" and "1 node cannot be imported" in out
    assert [line.split()[0] for line in out.splitlines()[1:6]] == ["Frobnicate", "Conv", "MatMul", "ReduceMean", "Relu"]
    status, out, err = tir_("run unknown.onnx")
    assert status == 1 and out == "" and "Frobnicate  13       1      Frobnicate of out  there is no row" in err
    status, out, _ = tir_("ops model.onnx --json")
    assert status == 0 and [row["count"] for row in json.loads(out)["operators"]] == [1] * 5


@pytest.mark.parametrize(
    "line", ["tree model.onnx", "explore model.onnx --no-browser", "opt model.onnx --trace steps.json"]
)
def test_verbs_for_schedules_refuse_a_model(tir_, line):
    status, _, err = tir_(line)
    assert status == 1 and "model.onnx is a model: compiling it schedules its kernels" in err


def test_verbs_for_programs_take_the_program_of_a_model(tir_):
    assert "define" in tir_("source model.onnx --kind llvm")[1]
    assert tir_("diff model.onnx model.onnx")[:2] == (0, "the same\n")


@pytest.mark.parametrize(
    "line", ["build model.onnx -o m.so --header m.h", "build model.onnx -o m.o --weights m.weights"]
)
def test_a_model_that_was_built_runs_as_the_model_does(line, tir_):
    assert tir_(line)[0] == 0
    file = line.split()[3]
    for name in (file, "model.onnx"):
        assert tir_(f"run {name} --seed 3 --output out={name}.npy")[0] == 0
    np.testing.assert_array_equal(np.load(f"{file}.npy"), np.load("model.onnx.npy"))
    if "m.h" in line:
        assert "int32_t m(const float *data, float *out);" in Path("m.h").read_text()
    else:
        Path("m.weights").rename("moved")
        assert tir_("run m.o")[0] == 1 and tir_("run m.o --weights moved")[0] == 0
    assert tir_(f"bench {file} --number 1 --repeat 1 {'--weights moved' * (file == 'm.o')}")[0] == 0


def with_external_data(path: str) -> None:
    model = small_model()
    onnx.save(model, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    Path("data.bin").unlink()


BAD = [
    "ops kernels.py", "ops nowhere.onnx", "show nowhere.onnx", "run empty.onnx", "run cut.onnx", "run foreign.onnx", "run external.onnx",
    "run model.onnx --input date=x.npy", "run model.onnx --input data=short.npy", "run model.onnx --input data=double.npy",
    "run model.onnx --input data=rank.npy", "run model.onnx --input data=nowhere.npy", "run model.onnx --inputs nowhere.npz",
    "run model.onnx --inputs short.npy", "run model.onnx --inputs broken.npz", "run model.onnx --input data=broken.npz", "run model.onnx --input data=x.npz", "run model.onnx --inputs other.npz", "run model.onnx --inputs x.npz --input data=x.npy",
    "run model.onnx --output wrong=y.npy", "run model.onnx --outputs /no/such/y.npz", "run model.onnx --target cuda",
    "run model.onnx --shape data=2,3,16,16", "run model.onnx --shape date=2", "run model.onnx --shape data", "run model.onnx --shape data=x",
    "run open.onnx --shape data=0,3,16", "run open.onnx --shape data=1,3,16,16 --shape data=1,3,16,16", "run model.onnx --shape",
    "run model.onnx:main --check", "show model.onnx --graph --fused", "show kernels.py --graph", "bench model.onnx --repeat 0", "bench model.onnx --kernels --repeat 0", "bench kernels.py --kernels",
    "check open.onnx", "check cut.onnx", "run model.onnx --seed -1", "lower cut.onnx",
    "build model.onnx -o m.s --weights m.weights", "build model.onnx -o m.o --weights /no/such/folder/w", "build kernels.py -o m.o --weights w",
    "build unknown.onnx", "build unnamed.onnx -o m.o", "build model.onnx -o m.so.1", "run cut.so", "run foreign.onnx --weights w",
]  # fmt: skip


@pytest.fixture
def bad_files():
    Path("kernels.py").write_text("")
    Path("empty.onnx").write_text("")
    Path("cut.onnx").write_bytes(Path("model.onnx").read_bytes()[:-40])
    Path("foreign.onnx").write_bytes(b"PK\3\4" + bytes(200))
    with_external_data("external.onnx")
    x = np.zeros((1, 3, 16, 16), "float32")
    np.save("x.npy", x)
    np.savez("x.npz", data=x)
    np.savez("other.npz", date=x)
    Path("broken.npz").write_bytes(Path("x.npz").read_bytes()[:-30])
    np.save("short.npy", x[:, :2])
    np.save("double.npy", x.astype("float64"))
    np.save("rank.npy", x[0])


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_status_1_or_2(line, tir_, bad_files):
    status, out, err = tir_(line)
    assert status in (1, 2) and out == "" and len(err.splitlines()) == 1, (status, out, err)


def test_without_the_package_onnx_the_extra_is_named(tir_, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    monkeypatch.setitem(__import__("sys").modules, "onnx.inliner", None)
    for verb in ("run", "ops", "show"):
        status, _, err = tir_(f"{verb} model.onnx")
        assert status == 1 and "pip install 'tensorir[onnx]'" in err and err.count("\n") == 1
    assert "pip install 'tensorir[onnx]'" in tir_("doctor")[1]
