"""Compiled models that are found by the bytes of their ONNX files: the same models, of the same files, and not where code of others has a part."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tir
from tir.config import override
from tir.importers import kept_files, onnx_table, specialised
from tir.importers.kept_files import file_key, plain_key
from tir.ops import registry

onnx = pytest.importorskip("onnx")

TARGET = "llvm -num-cores=1"
X = np.random.default_rng(1).standard_normal((3, 8)).astype("float32")
W = np.arange(32, dtype="float32").reshape(8, 4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIR_CACHE", "1")
    monkeypatch.setenv("TIR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list:
    """The models that are imported, not found."""
    made = []
    from_onnx = specialised.from_onnx
    monkeypatch.setattr(specialised, "from_onnx", lambda read, *rest: made.append(read) or from_onnx(read, *rest))
    return made


def model(by: float = 1.0):
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [3, m]) for n, m in (("x", 8), ("y", 4)))
    w = onnx.numpy_helper.from_array(W * np.float32(by), "w")
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["p"]), onnx.helper.make_node("Relu", ["p"], ["y"])]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y], [w]))


def saved(folder: Path, **options) -> Path:
    onnx.save(model(), folder / "m.onnx", **options)
    return folder / "m.onnx"


def test_a_file_is_found_by_its_bytes(imports: list, folder: Path):
    path = saved(folder)
    first, *others = (tir.compile(each, TARGET) for each in (path, str(path), path.read_bytes()))
    assert len(imports) == 1
    for other in others:
        np.testing.assert_array_equal(other(X), first(X))
        assert (other.inputs, other.outputs, other.kernels) == (first.inputs, first.outputs, first.kernels)
    tir.compile(model(), TARGET)
    tir.compile(path, "llvm -num-cores=2")
    assert len(imports) == 3, "neither a model in memory nor one for another machine is found by a file"


def test_another_file_is_another_model(imports: list, folder: Path):
    path = saved(folder)
    tir.compile(path, TARGET)
    onnx.save(model(2.0), path)
    np.testing.assert_allclose(tir.compile(path, TARGET)(X), np.maximum(X @ (2 * W), 0), rtol=1e-5)
    assert len(imports) == 2


def test_a_file_of_several_chunks_is_read_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(folder)
    whole = file_key(path, TARGET)
    assert whole is not None and whole == file_key(path.read_bytes(), TARGET)
    monkeypatch.setattr(kept_files, "_CHUNK", 16)
    assert file_key(path, TARGET) == whole
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    assert file_key(path, TARGET) != whole


def test_the_hash_of_a_file_is_kept_once_it_is_no_longer_new(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(folder)
    for settled, is_kept in ((1 << 62, False), (0, True)):
        monkeypatch.setattr(kept_files, "_SETTLED", settled)
        whole = file_key(path, TARGET)
        with monkeypatch.context() as patch:
            patch.setattr(kept_files, "_CHUNK", 0)  # nothing is read
            assert (file_key(path, TARGET) == whole) == is_kept
            os.utime(path, ns=(1, 1 + is_kept))
            assert file_key(path, TARGET) != whole
    path.write_bytes(path.read_bytes() + b"\0")
    assert file_key(path, TARGET) == file_key(path.read_bytes(), TARGET) != whole


def test_a_model_with_data_in_other_files_is_imported_again(imports: list, folder: Path):
    path = saved(folder, save_as_external_data=True, location="w.bin", size_threshold=0)
    tir.compile(path, TARGET)
    (folder / "w.bin").write_bytes(np.ones_like(W).tobytes())
    np.testing.assert_allclose(tir.compile(path, TARGET)(X), np.maximum(X @ np.ones_like(W), 0), rtol=1e-5)
    assert len(imports) == 2


@pytest.mark.parametrize("suffix", [".file", ".weights", ".model"])
def test_a_model_of_which_a_part_is_missing_is_made_again(suffix: str, imports: list, folder: Path):
    path = saved(folder)
    tir.compile(path, TARGET)
    (part,) = folder.rglob(f"*{suffix}")
    part.unlink()
    np.testing.assert_allclose(tir.compile(path, TARGET)(X), np.maximum(X @ W, 0), rtol=1e-5)
    assert len(imports) == 2 and part.exists()


def test_what_others_have_a_part_in_has_no_key(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(folder)
    assert file_key(path, TARGET) is not None
    assert file_key(path, "interpreter") is None and file_key(folder / "none.onnx", TARGET) is None
    with override(verify=True):
        assert file_key(path, TARGET) is None
    with monkeypatch.context() as patch:
        patch.setitem(onnx_table._ROWS, ("", "Other"), {1: test_another_file_is_another_model})
        assert file_key(path, TARGET) is None
    relu = registry.find("nn.relu")
    with monkeypatch.context() as patch:
        patch.setitem(registry._NAMES, "nn.relu", dataclasses.replace(relu, function=saved))
        assert file_key(path, TARGET) is None


def test_a_model_that_is_not_kept_is_not_found(imports: list, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tir.graph.keys.MOST", 1)
    path = saved(folder)
    for _ in range(2):
        assert tir.compile(path, TARGET).key is None
    assert len(imports) == 2 and not list(folder.rglob("*.file"))


FINDS = """
import sys
import numpy as np
import tir
model = tir.compile(sys.argv[1], sys.argv[2])
np.save(sys.argv[3], model(np.load(sys.argv[3])))
print("tir.transform" in sys.modules, "tir.ops" in sys.modules)
"""


def test_a_process_that_finds_a_model_loads_nothing_that_compiles(folder: Path):
    path = saved(folder)
    os.utime(path, ns=(1, 1))

    def found() -> tuple[str, np.ndarray]:
        np.save(folder / "x.npy", X)
        command = [sys.executable, "-c", FINDS, path, TARGET, folder / "x.npy"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return shown.strip(), np.load(folder / "x.npy")

    for compiles in (True, False):
        shown, y = found()
        assert shown == f"{compiles} {compiles}"
        np.testing.assert_allclose(y, np.maximum(X @ W, 0), rtol=1e-5)
    size = path.stat().st_size
    onnx.save(model(2.0), path)
    os.utime(path, ns=(1, 1))
    assert path.stat().st_size == size
    np.testing.assert_allclose(found()[1], np.maximum(X @ (2 * W), 0), rtol=1e-5)


@pytest.mark.parametrize(
    "module", ["tir.tune.space", "tir.ops.registry", "tir.graph.graph_passes", "tir.importers.onnx_table"]
)
def test_what_others_can_add_to_is_loaded_with_tables(module: str):
    shows = f"import sys, {module}; print(not {kept_files.TABLES!r}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", shows], check=True, capture_output=True, text=True).stdout == "True\n"


def test_the_key_of_a_process_that_has_loaded_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(folder)
    assert plain_key(path, TARGET) is None, "here something was loaded"
    monkeypatch.setattr(kept_files, "TABLES", set())
    first = plain_key(path, TARGET)
    assert first is not None and first == plain_key(path.read_bytes(), TARGET) != file_key(path, TARGET)
    assert plain_key(path, "llvm -num-cores=2") != first
    assert plain_key(path, "interpreter") is None and plain_key(folder / "none.onnx", TARGET) is None
    with override(verify=True):
        assert plain_key(path, TARGET) is None
    package = folder / "other-1.0.dist-info"
    package.mkdir()
    monkeypatch.syspath_prepend(folder)
    second = plain_key(path, TARGET)
    (package / "entry_points.txt").write_text("[tir.tune_rules]\nother = other\n")
    assert len({first, second, plain_key(path, TARGET)}) == 3
