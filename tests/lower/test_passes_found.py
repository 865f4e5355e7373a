"""Passes are found by themselves: a new file in tir/transform is a pass, and no list names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tir
from tir import transform
from tir.transform.passes import PASSES, Pass

NEW_PASS = '''
"""Marks functions."""
from .passes import func_pass


@func_pass
def mark_seen(func, key="seen"):
    """Set an attribute."""
    return func.with_attr(key, 1)
'''

USE = """
import tir
from tir import transform
from tir.script import tir as T

@T.prim_func
def one(A: T.Buffer((4,), "float32")):
    A[0] = T.float32(1)

assert transform.find("mark_seen") is transform.mark_seen
assert "mark_seen" in transform.__all__ and "mark_seen" in dir(transform)
assert transform.mark_seen(one).attrs["seen"] == 1
assert transform.MarkSeen(key="mine")(one).attrs["mine"] == 1
assert tir.lower(one, insert={"after:simplify": transform.mark_seen})["main"].attrs["seen"] == 1
from tests.tools.generated import pass_stub
assert "from .marking import mark_seen as mark_seen" in pass_stub.text()
"""


def test_a_new_file_is_a_pass(tmp_path: Path):
    package = Path(tir.__file__).parent
    for name in ("tir", "codegen"):
        shutil.copytree(package.parent / name, tmp_path / name)
    (tmp_path / "tir" / "transform" / "marking.py").write_text(NEW_PASS)
    (tmp_path / "use.py").write_text(USE)  # the copy is found first: it lies beside the script
    path = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, env=path)
    assert done.returncode == 0, done.stderr


def test_every_pass_is_exported():
    ours = {name: made for name, made in PASSES.items() if made.fn.__module__.startswith("tir.transform.")}
    assert {"simplify", "swizzle_storage", "check_thread_memory"} <= ours.keys()
    for name, made in ours.items():
        assert getattr(transform, name) is made and transform.find(name) is made and name in transform.__all__
    pipelines = [*transform.cpu_pipeline(), *transform.gpu_pipeline()]
    assert all(isinstance(step, Pass) and step.name in ours for step in pipelines)


def test_every_pass_is_in_a_pipeline_or_says_that_it_is_not_and_is_on_the_page():
    page = (Path(__file__).parents[2] / "docs" / "lowering.md").read_text(encoding="utf-8")
    used = {step.name for step in (*transform.cpu_pipeline(), *transform.gpu_pipeline())}
    for name, made in PASSES.items():
        if made.fn.__module__.startswith("tir.transform."):
            said = "In no pipeline:" in (made.fn.__doc__ or "")
            assert (name in used) != said, (
                f"{name}: put it in a pipeline, or `In no pipeline: ` and why in its docstring"
            )
            row = f"| `{name}` |" if name in used else f"`{name}`"
            assert row in page, f"docs/lowering.md has no {row}"
