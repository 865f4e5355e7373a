"""``tvmc compile`` and ``tvmc run``: the users' own lines, and how they refuse."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from small_models import small_model

import tir
from tir.cli import tvmc

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
ROOT = Path(__file__).parents[2]
X = np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype("float32")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, kept):
    monkeypatch.chdir(tmp_path)
    onnx.save(small_model(), "model.onnx")
    onnx.save(small_model("N"), "open.onnx")
    np.savez("x.npz", data=X)
    return tmp_path


def expected():
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(small_model()).run(None, {"data": X})[0]


USERS = """\
tvmc compile --target "llvm" --output resnet50-v2-7-tvm.tar resnet50-v2-7.onnx
mkdir model
tar -xvf resnet50-v2-7-tvm.tar -C model
ls model
tvmc run --inputs x.npz --output predictions.npz resnet50-v2-7-tvm.tar
"""


@pytest.mark.skipif(shutil.which("tar") is None or shutil.which("sh") is None, reason="needs a shell and tar")
def test_the_lines_of_the_users_word_for_word(folder):
    (folder / "bin").mkdir()
    script = folder / "bin/tvmc"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tir.cli.tvmc "$@"\n')
    script.chmod(0o755)
    onnx.save(small_model("N"), "resnet50-v2-7.onnx")
    env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-e", "-c", USERS], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["mod.so", "mod.json", "mod.params", "mod.json", "mod.params", "mod.so"]
    assert "compiled for [1, 3, 16, 16]" in done.stderr
    np.testing.assert_allclose(np.load("predictions.npz")["output_0"], expected(), rtol=1e-4)
    graph = json.loads(Path("model/mod.json").read_text())
    assert [p["name"] for p in graph["params"]] == ["w", "d"] and graph["heads"] == {"out": "softmax"}
    made = tir.load("model/mod.so", weights="model/mod.params")
    np.testing.assert_allclose(made(X), expected(), rtol=1e-4)


def test_the_script_is_installed():
    (target,) = re.findall(r'^tvmc = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)
    module, _, name = target.partition(":")
    assert getattr(sys.modules[module], name) is tvmc.main


def test_shapes_times_and_the_largest_results(capsys):
    assert tvmc.main(["compile", "open.onnx", "--input-shapes", "data:[2, 3,16,16]", "-o", "m.tar"]) == 0
    assert tvmc.main(["run", "m.tar", "--print-time", "--print-top", "2", "--outputs", "y.npz"]) == 0
    out, err = capsys.readouterr()
    y = np.load("y.npz")["output_0"]
    indices, values = map(json.loads, out.splitlines()[:2])
    assert err == "" and y.shape == (2, 10) and values == sorted(map(float, y.reshape(-1)))[:-3:-1]
    assert y.reshape(-1)[indices].tolist() == values and "mean (ms)  median (ms)" in out


def archive(name: str, **members: bytes) -> None:
    with tarfile.open(name, "w") as made:
        for member, content in members.items():
            about = tarfile.TarInfo(member.replace("_", "."))
            about.size = len(content)
            made.addfile(about, io.BytesIO(content))


BAD = [
    "", "compile", "run", "tune x", "compile nowhere.onnx", "compile cut.onnx", "compile model.onnx -o m.zip", "compile model.onnx -o /no/such/m.tar",
    "compile model.onnx --target cuda", "compile model.onnx --target nothing", "compile model.onnx --input-shapes data",
    "compile model.onnx --input-shapes data:[2,3,16,16]", "compile model.onnx --input-shapes date:[2]", "compile unknown.onnx --model-format tflite",
    "run nowhere.tar", "run model.onnx", "run empty.tar", "run cut.tar", "run code.tar", "run foreign.tar", "run kernel.tar", "run other.tar",
    "run m.tar --inputs nowhere.npz", "run m.tar --inputs date.npz", "run m.tar --inputs short.npz", "run m.tar --outputs .", "run m.tar --repeat 0",
    "run m.tar --device cuda", "run folder.tar", "run zipped.tar",
]  # fmt: skip


@pytest.fixture
def bad_files(capsys):
    Path("cut.onnx").write_bytes(Path("model.onnx").read_bytes()[:-40])
    onnx.save(small_model(last="Frobnicate"), "unknown.onnx")
    assert tvmc.main(["compile", "model.onnx", "-o", "m.tar"]) == 0
    whole = Path("m.tar").read_bytes()
    Path("cut.tar").write_bytes(whole[: len(whole) // 2])
    with tarfile.open("m.tar") as made:
        code, params = (made.extractfile(name).read() for name in ("mod.so", "mod.params"))
    tir.build(tir.library.elementwise.scale_add(2)).save("k.so")
    archive("empty.tar")
    archive("code.tar", mod_so=code)
    archive("foreign.tar", mod_so=b"code", mod_params=params)
    archive("kernel.tar", mod_so=Path("k.so").read_bytes(), mod_params=params)
    archive("other.tar", mod_so=code, mod_params=params[:-1] + b"?")
    with tarfile.open("folder.tar", "w") as made:
        about = tarfile.TarInfo("mod.so")
        about.type, about.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(about)
    subprocess.run([sys.executable, "-c", "import gzip; open('zipped.tar', 'wb').write(gzip.compress(bytes(10**6)))"])
    np.savez("date.npz", date=X)
    np.savez("short.npz", data=X[:, :2])
    capsys.readouterr()


def test_bad_input_is_one_line_and_status_1_or_2(bad_files, capsys):
    for line in BAD:
        status = tvmc.main(line.split())
        out, err = capsys.readouterr()
        assert status in (1, 2) and out == "" and len(err.splitlines()) == 1, (line, status, out, err)
    assert tvmc.main(["compile", "unknown.onnx"]) == 1
    assert "Frobnicate  13" in capsys.readouterr().err and not Path("module.tar").exists()
    assert not [path.name for path in Path().iterdir() if "part" in path.name]
