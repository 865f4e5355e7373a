"""Models with symbolic sizes as files: what C and Python compute at several sizes, and which sizes are refused."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from test_graph_sizes import attention

import tir
from tir.graph import Builder, compile_graph

RNG = np.random.default_rng(0)


def sliced():
    """A model of two symbols, one of which only its state has, and of a row that must be there."""
    b = Builder()
    seen, x = b.input("seen", ("m", 4)), b.input("x", ("n", 4))
    third = b.call("strided_slice", b.call("cumsum", x, 0), (2,), (3,), (1,), (0,))
    kept = b.call("add", seen, b.call("reshape", third, (4,)))
    return b.graph({"seen": kept, "sum": b.call("cumsum", b.call("cumsum", kept, 0), 1)})


@pytest.fixture(scope="module")
def model():
    return compile_graph(attention())


@pytest.fixture(scope="module")
def with_state():
    return compile_graph(sliced(), state=["seen"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


PROGRAM = """\
#include "m.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    int32_t n;
    int64_t bytes;
    while (fread(&n, sizeof n, 1, stdin) == 1) {
        float *x = malloc(32 * n + 1), *y = malloc(16 * n + 1), *again = malloc(16 * n + 1);
        if (fread(x, 32, n, stdin) != (size_t) n) return 1;
        int32_t code = m_workspace_bytes(n, &bytes);
        if (!code != !m(x, y, n)) return 2;
        if (code) { printf("%s|%s", m_error(code), m_error(m(x, y, -9))); return 0; }
        void *memory = aligned_alloc(64, bytes);
        if (m_with_workspace(x, again, memory, n)) return 3;
        if (m_with_workspace(x, again, memory, 0) == 0) return 4;
        fwrite(&bytes, sizeof bytes, 1, stdout);
        fwrite(y, 16, n, stdout);
        fwrite(again, 16, n, stdout);
        free(x), free(y), free(again), free(memory);
    }
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("suffix", [".o", ".so", ".a"])
def test_a_program_of_c_runs_a_model_at_several_sizes(model, suffix, folder):
    model.save(f"m{suffix}", header="m.h", threads="serial")
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["cc", "-Wall", "-Werror", "-c", "p.c", "-o", "p.o"], check=True)
    subprocess.run(["cc", "p.o", f"./m{suffix}", "-lm", "-o", "p"], check=True)
    arrays = [RNG.standard_normal((n, 8)).astype("float32") for n in (3, 40)]
    given = b"".join(np.int32(len(x)).tobytes() + x.tobytes() for x in arrays) + np.int32(0).tobytes()
    made = subprocess.run(["./p"], input=given, capture_output=True, check=True).stdout
    for x in arrays:
        assert int.from_bytes(made[:8], "little") == model.plan.at({"n": len(x)}).nbytes
        y, again = np.frombuffer(made[8:][: 32 * len(x)], "float32").reshape(2, len(x), 4)
        np.testing.assert_array_equal(y, model(x))
        np.testing.assert_array_equal(again, y)
        made = made[8 + 32 * len(x) :]
    assert made == b"workspace_bytes: the size n is less than 1|run: the size n is less than 1"


def test_the_header_has_the_sizes_of_results_and_no_number_of_bytes(model, folder):
    model.save("m.o", header="m.h")
    text = (folder / "m.h").read_text()
    assert "int32_t m(const float *x, float *y, int32_t n);" in text and " *   y: float32 (n, 4), " in text
    assert "int32_t m_workspace_bytes(int32_t n, int64_t *result);" in text and "M_WORKSPACE_BYTES" not in text


@pytest.mark.parametrize("suffix", [".o", ".so"])
def test_a_model_that_is_loaded_checks_what_the_model_checks(with_state, suffix):
    with_state.save(f"s{suffix}")
    loaded = tir.load(f"s{suffix}")
    assert str(loaded) == str(with_state).replace("CompiledModel", "LoadedModel")
    assert loaded.workspace_bytes == with_state.workspace_bytes
    for n, m in ((3, 2), (5, 7), (4, 1)):
        x = RNG.standard_normal((n, 4)).astype("float32")
        states = [each.new_state(m=m) for each in (loaded, with_state)]
        for _ in range(2):
            made = [each(x, state=state) for each, state in zip((loaded, with_state), states)]
            np.testing.assert_array_equal(*made)
        np.testing.assert_allclose(states[0]["seen"], np.broadcast_to(2 * x[:3].sum(0), (m, 4)), rtol=1e-5)
    for n, m, said in (
        (2, 3, r"`.*reshape.*` needs .*n, 3.* == 1; the arrays of the call have n = 2, m = 3"),
        (0, 3, "the size n would be 0"),
        (3, 0, "the size m would be 0"),
    ):
        for each in (loaded, with_state):
            with pytest.raises(tir.RunError, match=said):
                each(np.zeros((n, 4), "float32"), state={"seen": np.zeros((m, 4), "float32")})


def test_a_state_may_have_symbols_that_come_before_those_of_the_inputs(with_state):
    assert with_state.graph.symbols == ("m", "n")
    assert [p.name for p in with_state.module["main"].func.params][-2:] == ["n", "m"]


def test_c_gives_sizes_beside_tensors_that_are_checked(model, folder):
    model.save("m.so", "m.h", threads="serial", checks=True)
    assert "int32_t m_tensors(const m_tensor *x, const m_tensor *y, int32_t n);" in (folder / "m.h").read_text()
    np.testing.assert_array_equal(tir.load("m.so")(np.ones((5, 8), "float32")), model(np.ones((5, 8), "float32")))
