"""Completion: what Tab offers after a dot and inside of strings."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import tir
import tir.intrin
import tir.library
from tests.hand_schedules import gemm
from tir.notebook.completion import completions, cursor
from tir.script import tir as T


@pytest.fixture
def names() -> dict:
    sch = tir.Schedule(gemm.gemm(64, 64, 64))
    return {"sch": sch, "block": sch["store"], "f": gemm.gemm(64, 64, 64)}


@pytest.mark.parametrize(
    "line,offered",
    [
        ('sch.split("multiply.i', ["multiply.io", "multiply.ii"]),
        ("sch.can.split('multiply.i", ["multiply.io", "multiply.ii"]),
        ('a, b = sch.split("multiply.i', ["multiply.io", "multiply.ii"]),
        ('sch.split(loop="multiply.i', ["multiply.io", "multiply.ii"]),
        ('sch.reorder("pack.p", "multiply.i', ["multiply.io", "multiply.ii"]),
        ('sch.tile(["pack.p", "multiply.i', ["multiply.io", "multiply.ii"]),
        ('sch.compute_at(sch.get_block("pack"), "store.i', ["store.io", "store.ii"]),
        ('sch.get_block("', ["root", "pack", "multiply", "store"]),
        ('sch.bind("x", "thr', ["threadIdx.x", "threadIdx.y", "threadIdx.z"]),
        ('sch.bind("x", thread_axis="vthread.', ["vthread.x", "vthread.y", "vthread.z"]),
        ('sch.cache_read("pack", "', ["B"]),
        ('sch.cache_read(block, "', ["tiles"]),
        ('sch.cache_read("pack", 0, "lo', ["local"]),
        ('sch.split("x", tail="', ["guard", "cut", "exact"]),
        ('tir.build(f, "cuda', ["cuda", "cuda-sim", "cuda-ptx"]),
        ('tir.Schedule(f, target="ll', ["llvm"]),
        ("x = sch.can.spl", ["split"]),
        ("f.can.spl", []),
        ('print("mul', []),
        ('unknown.split("', []),
        ('f.split("', []),
        ("sch.split(", []),
        ('sch.split("pack.p")', []),
        ('sch.fuse("pack.p", name="', []),
    ],
)
def test_names_in_strings(names, line, offered):
    assert completions(line, names) == offered


def test_the_call_around_a_string():
    assert cursor('f(g("a", (1, 2)), [3, 4], key="va').before == ('g("a", (1, 2))', "[3, 4]")
    assert cursor('f("a, (b", "c').before == ('"a, (b"',)
    assert cursor("f('it\\'s") is not None
    assert cursor('"only a string') is None


def test_nothing_is_evaluated_on_the_way(names):
    class Trap:
        @property
        def sch(self):
            raise AssertionError("evaluated")

    assert completions('trap.sch.split("', {"trap": Trap()}) == []


def test_what_follows_a_dot():
    assert {"Schedule", "build", "exp", "library", "const", "if_then_else"} <= set(dir(tir))
    assert {"Any", "annotations", "TYPE_CHECKING", "importlib", "BOOL", "set_field"}.isdisjoint(dir(tir))
    assert all(hasattr(tir, name) for name in dir(tir))
    assert {"Buffer", "grid", "exp", "float16", "prim_func", "axis", "macro"} <= set(dir(T))
    assert {"Any", "annotations", "Callable", "Sequence", "builtins", "to_expr"}.isdisjoint(dir(T))
    assert all(hasattr(T, name) for name in dir(T))


@pytest.mark.parametrize("name", ["te", "testing", "arith", "transform", "target", "schedule", "script", "tune"])
def test_packages_offer_nothing_that_they_import(name):
    package = getattr(tir, name)
    offered = [n for n in dir(package) if not n.startswith("_")]
    assert {"Any", "annotations", "importlib", "Callable", "dataclass", "pkgutil"}.isdisjoint(offered)
    assert all(hasattr(package, n) for n in offered) and set(getattr(package, "__all__", ())) <= set(offered)


@pytest.mark.parametrize("package", [tir.library, tir.intrin])
def test_packages_list_their_modules(package):
    there = {m.name for m in pkgutil.iter_modules(package.__path__)}
    assert there <= {*dir(package), "tensor_intrin"}
    for name in dir(package):
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing


def test_a_name_of_a_family_is_found_again():
    with pytest.raises(AttributeError, match=r"it is tir\.intrin\.x86\.VNNI_DOT_16x4_INTRIN"):
        tir.intrin.VNNI_DOT_16x4_INTRIN


@pytest.fixture(scope="module")
def shell():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell(config=config)
    made.push({"tir": tir, "sch": tir.Schedule(gemm.gemm(64, 64, 64))})
    yield made
    made.history_manager.end_session() if made.history_manager.enabled else None


def tab(shell, text: str) -> list[str]:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        return [c.text for c in shell.Completer.completions(text, len(text))]


def test_in_ipython(shell):
    assert tab(shell, 'sch["pack.j') == ["pack.ji", "pack.jo"]
    assert "gemm" in tab(shell, "tir.library.")
    assert "pack.jo" not in tab(shell, 'sch.split("')
    shell.run_line_magic("load_ext", "tir.notebook")
    shell.run_line_magic("load_ext", "tir.notebook")
    assert "pack.jo" in tab(shell, 'sch.split("')
    assert {"split", "parallel", "cache_read"} <= set(tab(shell, "sch.can."))
    assert [m for m in shell.Completer.custom_matchers if "tir" in m.matcher_identifier] != []
    shell.run_line_magic("unload_ext", "tir.notebook")
    assert "pack.jo" not in tab(shell, 'sch.split("')


def test_without_jedi(shell):
    """IPython's own completer evaluates no attribute of an object that has ``__getattr__``, as schedules have."""
    shell.Completer.use_jedi = False
    shell.run_line_magic("load_ext", "tir.notebook")
    assert {"split", "parallel", "cache_read"} <= set(tab(shell, "sch.can."))
    assert tab(shell, "sch.can.storage_al") == ["storage_align"]
    assert "pack.jo" in tab(shell, 'sch.split("')


def test_a_session_completes_from_the_first_schedule_on():
    pytest.importorskip("IPython")
    code = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config()
config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
shell.run_cell("import tir; from tir.library import gemm; sch = tir.Schedule(gemm.gemm(8, 8, 8))")
print([m.matcher_identifier for m in shell.Completer.custom_matchers])
shell.run_line_magic("unload_ext", "tir.notebook")
shell.run_cell("tir.Schedule(gemm.gemm(8, 8, 8))")
print([m.matcher_identifier for m in shell.Completer.custom_matchers])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert shown == ["['tir.notebook']", "[]"]
