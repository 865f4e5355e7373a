"""Models as files: what they compute, what C calls, and which files are refused."""

from __future__ import annotations

import ctypes
import pickle
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest

import tir
from tir.graph import Builder, compile_graph
from tir.interp.dlpack import _DLTensor, type_code

X = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")


def network(seed=0):
    rng = np.random.default_rng(seed)
    b = Builder()
    x = b.input("x", (4, 8))
    w, v = (b.constant(rng.standard_normal(s).astype("float32"), n) for n, s in {"w": (8, 16), "v": (16, 3)}.items())
    hidden = b.call("cumsum", b.call("nn.relu", b.call("matmul", x, w)), 0)
    return b.graph({"y": b.call("matmul", hidden, v), "last": b.call("sum", hidden, (1,))})


@pytest.fixture(scope="module")
def model():
    return compile_graph(network())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("beside", [None, "m.weights"])
@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_a_model_that_is_loaded_computes_the_same(model, suffix, beside):
    model.save(f"m{suffix}", weights=beside)
    loaded = tir.load(f"m{suffix}")
    for got, expected in zip(loaded(x=X), model(X)):
        np.testing.assert_array_equal(got, expected)
    assert (loaded.inputs, loaded.outputs, loaded.kernels) == (model.inputs, model.outputs, model.kernels)
    assert loaded.workspace_bytes == model.workspace_bytes and not loaded.weights.flags.writeable
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded))(X)[0], model(X)[0])
    with pytest.raises(tir.RunError, match="it takes x: float32"):
        loaded(z=X)


@pytest.mark.parametrize(
    "options", [{"threads": "pool"}, {"threads": "serial"}, {"levels": ("x86-64-v2", "x86-64-v3")}]
)
def test_the_options_of_other_modules_are_those_of_a_model(model, options):
    if "levels" in options and platform.machine() != "x86_64":
        pytest.skip("levels are of x86-64")
    model.save("m.so", **options)
    np.testing.assert_allclose(tir.load("m.so")(X)[0], model(X)[0], rtol=1e-5)


def test_weights_that_were_moved_are_named(model, folder):
    model.save("m.o", weights="m.weights")
    (folder / "m.weights").rename("other")
    with pytest.raises(tir.BuildError, match=r"its weights .*m\.weights.* cannot be read"):
        tir.load("m.o")
    loaded = tir.load("m.o", weights="other")
    for each in (loaded, pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_array_equal(each(X)[0], model(X)[0])


def test_weights_of_another_model_are_refused(model, folder):
    model.save("m.o", weights="m.weights")
    compile_graph(network(1)).save("n.o", weights="n.weights")
    cut = (folder / "m.weights").read_bytes()[:-1]
    (folder / "cut").write_bytes(cut)
    for file in ("n.weights", "cut", "m.o"):
        with pytest.raises(tir.BuildError, match="are not the weights of m.o"):
            tir.load("m.o", weights=file)


def test_what_takes_no_weights_is_given_none(model):
    model.save("m.o")
    with pytest.raises(tir.BuildError, match="has its weights in it"):
        tir.load("m.o", weights="m.o")
    tir.build(tir.library.elementwise.scale_add(2)).save("k.o")
    with pytest.raises(tir.BuildError, match="is no model"):
        tir.load("k.o", weights="m.o")


def test_what_cannot_be_saved_is_refused(model, monkeypatch):
    with pytest.raises(tir.BuildError, match="a model for interpreter has no code"):
        compile_graph(network(), "interpreter").save("m.o")
    with pytest.raises(tir.BuildError, match="must end in"):
        model.save("m.xyz")
    monkeypatch.setattr("tir.graph.saved_model.MOST", 100)
    with pytest.raises(tir.BuildError, match="bytes of weights are too many for a file of code"):
        model.save("m.o")
    model.save("m.o", weights="m.weights")


@pytest.mark.parametrize(
    "change",
    [{"inputs": [["x", [-1], "floaty"]]}, {"inputs": 3}, {"weights": {}}, {"weights": None}, {"outputs": [[1]]}],
)
def test_a_description_that_is_none_is_refused(model, change, monkeypatch, folder):
    from codegen import container

    model.save("m.o")
    file = container.read(folder / "m.o")
    about = {**file.about, "model": {**file.about["model"], **change}}
    container.write(folder / "m.o", file.kind, file.code, about)
    with pytest.raises(tir.BuildError, match="does not describe a model"):
        tir.load("m.o")


def test_weights_that_a_file_does_not_hold_are_refused(model, folder):
    from codegen import container

    model.save("m.o")
    file = container.read(folder / "m.o")
    weights = {**file.about["model"]["weights"], "parameter": "no_such"}
    container.write(
        folder / "m.o", file.kind, file.code, {**file.about, "model": {**file.about["model"], "weights": weights}}
    )
    with pytest.raises(tir.BuildError, match="holds nothing for `no_such`"):
        tir.load("m.o")


def test_weights_are_never_text(model, monkeypatch):
    seen = []
    monkeypatch.setattr("codegen.aot.files.object_code", lambda text, on: seen.append(text) or b"")
    monkeypatch.setattr("codegen.aot.files.filled", lambda data, contents: b"")
    big = Builder()
    x = big.input("x", (1000,))
    compile_graph(big.graph(big.call("add", x, big.constant(np.arange(1000, dtype="float32"), "w")))).save("m.o")
    assert len(seen) == 1 and "external constant [4032 x i8]" in seen[0] and "999" not in seen[0]


PROGRAM = """\
#include "m.h"
#include <stdio.h>
static uint8_t memory[M_WORKSPACE_BYTES] __attribute__((aligned(64)));
int main(void) {
    float x[32], y[12], last[4], again[12];
    if (fread(x, 1, sizeof x, stdin) != sizeof x) return 1;
    if (m(x, y, last) || m_with_workspace(x, again, last, memory)) return 2;
    fwrite(y, 1, sizeof y, stdout);
    fwrite(again, 1, sizeof again, stdout);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("suffix", "dialect"), [(".o", "-std=c99"), (".so", "-std=c99"), (".a", "-std=c99"), (".o", "-xc++")]
)
def test_a_program_of_c_calls_a_model_with_a_workspace_and_without(model, suffix, dialect, folder):
    model.save(f"m{suffix}", header="m.h", threads="serial")
    (folder / "p.c").write_text(PROGRAM)
    flags = [dialect, "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-c", "p.c", "-o", "p.o"], check=True)
    subprocess.run(["cc", "p.o", f"./m{suffix}", "-lm", "-o", "p"], check=True)
    done = subprocess.run(["./p"], input=X.tobytes(), capture_output=True, check=True)
    y, again = np.frombuffer(done.stdout, "float32").reshape(2, 4, 3)
    np.testing.assert_array_equal(y, model(X)[0])
    np.testing.assert_array_equal(again, y)


def test_all_that_a_file_of_a_model_defines_begins_with_its_name(model, folder):
    from codegen import container
    from codegen.elf import objects

    model.save("m.o")
    found = objects.read(container.read(folder / "m.o").code)
    names = [s.name for s in found.symbols if s.section is not None and s.binding != objects.LOCAL]
    assert {"m", "m_with_workspace", "m_error", "m.weights"} <= set(names)
    assert all(name == "m" or name.startswith(("m_", "m.")) for name in names)
    held = next(s for s in found.symbols if s.name == "m.weights")
    assert bytes(held.section.data) == model.weights.tobytes() and held.size == model.weights.nbytes


def test_a_library_of_a_model_checks_tensors_and_has_the_weights_itself(model, folder):
    model.save("m.so", "m.h", threads="serial", checks=True)
    (declared,) = re.findall(r"int32_t m_tensors\((.*)\);", (folder / "m.h").read_text())
    assert declared.count("const m_tensor *") == len(model.inputs) + len(model.outputs)
    library = ctypes.CDLL(str(folder / "m.so"))
    library.m_error.restype = ctypes.c_char_p
    results = [np.zeros(p.shape, str(p.dtype)) for p in model.outputs]

    def call(*arrays: np.ndarray) -> str:
        shapes = [(ctypes.c_int64 * a.ndim)(*a.shape) for a in arrays]
        kinds = [type_code(tir.DType(a.dtype.name)) for a in arrays]
        tensors = [_DLTensor(a.ctypes.data, 1, 0, a.ndim, *k, 1, s, None, 0) for a, k, s in zip(arrays, kinds, shapes)]
        return (library.m_error(library.m_tensors(*map(ctypes.byref, tensors))) or b"").decode()

    assert call(X, *results) == ""
    for got, expected in zip(results, model(X)):
        np.testing.assert_array_equal(got, expected)
    assert "size 0 of `x` is not" in call(X[:1], *results)
