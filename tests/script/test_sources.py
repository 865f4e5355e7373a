"""The dialect works where Python keeps no source: exec'd text, python -c, files as standard input, the old prompt."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tir

PROGRAM = """
import tir
from tir.script import ir as I, tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(2) * A[i]

def made(n):
    @T.prim_func
    def g(A: T.Buffer((n,), "float32")):
        for i in range(n):
            A[i] = T.float32(3) * A[i]
    return g

@I.ir_module
class M:
    @T.prim_func
    def h(A: T.Buffer((8,), "float32")):
        A[0] = T.float32(4)

print(f.script(), made(5).script(), M.script())
"""


def _check(out: str) -> None:
    for part in ("def f(", "2.0 * A[i]", "T.Buffer((5,)", "3.0 * A[i]", "class Module", "A[0] = "):
        assert part in out, out


def _python(*args: str, **options) -> str:
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tir.__file__))}
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, env=env, **options)
    return done.stdout + done.stderr


def test_exec_of_a_string(capsys):
    text = PROGRAM
    exec(text, {"__name__": "page"})
    _check(capsys.readouterr().out)


def test_python_c():
    _check(_python("-c", PROGRAM))


@pytest.mark.parametrize("flags", [["-"], ["-i"]])
def test_file_as_standard_input(tmp_path, flags):
    path = tmp_path / "program.txt"
    path.write_text(PROGRAM)
    with path.open() as file:
        _check(_python(*flags, stdin=file))


def test_prompt():
    """What is typed at a terminal is found in the prompt's history (Python 3.13 keeps it itself)."""
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    import select

    pid, terminal = pty.fork()
    if pid == 0:
        root = os.path.dirname(os.path.dirname(tir.__file__))
        os.execve(sys.executable, [sys.executable, "-q"], {**os.environ, "PYTHONPATH": root, "PYTHON_BASIC_REPL": "1"})
    os.write(terminal, (PROGRAM + "exit()\n").encode())
    out = b""
    while select.select([terminal], [], [], 20)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end has closed
            break
        if not part:
            break
        out += part
    os.waitpid(pid, 0)
    text = out.decode(errors="replace").replace("\r", "")
    _check(text[text.index("T.float32(4)") :])


def test_pipe_is_refused_with_a_way_out():
    out = _python("-", input=PROGRAM)
    assert "tir.errors.ParseError: the source text of function `f` is not available" in out
    assert "tir.script.parse(text)" in out


def test_a_text_that_gives_other_code_is_not_taken():
    other = (
        "from tir.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    A[1] = T.float32(1)\n"
    )
    space: dict = {"other": other}
    with pytest.raises(tir.ParseError, match="not available"):
        exec("".join([other[:-3], "2)\n"]), space)


def test_a_lambda_is_no_program():
    with pytest.raises(tir.ParseError, match="a lambda is one expression.*\n.*`def`"):
        tir.script.tir.prim_func(lambda A: A)
