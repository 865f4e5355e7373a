"""What the command ``tir`` prints, and its exit status: of lines that are right, and of wrong ones."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from functools import partial
from pathlib import Path

from tir.cli.command_line import main

from .stages import CACHES, Texts

PAGE = Path(__file__).parents[2] / "docs" / "command.md"
V4 = f"'llvm -num-cores=2 {CACHES} -mcpu=x86-64-v4 -vector_width=512'"
LINES = {
    "show": "show kernels.py:double",
    "show-scheduled": "show kernels.py:fast",
    "show-trace": "show kernels.py:fast --trace",
    "show-json": "show kernels.py:double --json",
    "tree": f"tree kernels.py:fast --target {V4}",
    "tree-json": f"tree kernels.py:double --json --target {V4}",
    "lower": f"lower kernels.py:double --target {V4}",
    "lower-fast": f"lower kernels.py:fast --target {V4}",
    "lower-gpu": "lower kernels.py:double --target 'cuda -arch=sm_80'",
    "lower-json": f"lower kernels.py:double --json --target {V4}",
    "opt": "opt kernels.py:double --passes simplify",
    "opt-many": "opt kernels.py:fast --passes convert_blocks_to_opaque,lower_opaque_block,flatten_buffer",
    "opt-unknown": "opt kernels.py:double --passes simplifi",
    "diff-same": "diff kernels.py:double kernels.py:double",
    "diff-other": "diff kernels.py:double kernels.py:fast",
    "source-cuda": "source kernels.py:double --target 'cuda -arch=sm_80'",
    "check": "check kernels.py:double",
    "check-json": "check kernels.py:fast --json",
    "run": "run kernels.py:double --seed 3",
    "run-interpreter": "run kernels.py:double --seed 3 --target interpreter",
    "run-json": "run kernels.py:fast --seed 4 --json",
    "no-file": "show nothing.py",
    "no-name": "show kernels.py:dubble",
    "no-target": "lower kernels.py:double --target lllvm",
    "several": "lower kernels.py",
    "text": "show double.tir",
    "broken": "show broken.tir",
    "no-suffix": "show double",
    "bash": "completion bash",
}


def line(text: str) -> Texts:
    """The output of a line, in a folder of its own that has the file of the documentation."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert found is not None
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("kernels.py").write_text(found[1], "utf-8")
            program = found[1][: found[1].index("fast =")].partition("\n\n\n")[2]
            Path("double.tir").write_text(program, "utf-8")
            Path("broken.tir").write_text(program.replace("range(64)", "range(64"), "utf-8")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(shlex.split(text))
        finally:
            os.chdir(before)
    yield "status", str(status)
    yield "output", out.getvalue()
    yield "errors", err.getvalue().replace(folder, ".")


CASES = {name: partial(line, text) for name, text in LINES.items()}
