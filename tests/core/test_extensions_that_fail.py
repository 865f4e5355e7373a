"""A package that does not import leaves out what it would have added, and says so every time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from importlib import metadata

import pytest

import tir
from tir import extension
from tir.script import parse
from tir.transform.passes import PASSES, func_pass

BROKEN = {
    "ImportError": ImportError("no such library"),
    "ValueError": ValueError("boom"),
    "SystemExit": SystemExit(3),
    "KeyError": KeyError("k"),
}
LOOKUPS = {
    extension.PRIMITIVES: lambda: tir.Schedule(COPY).no_such_step,
    extension.PASSES: lambda: tir.transform.find("no_such_pass"),
    extension.INTRINSICS: lambda: tir.TensorIntrin.get("no_such_intrinsic"),
    extension.TARGETS: lambda: tir.Target("no_such_target"),
    extension.OPERATORS: lambda: tir.ops.no_such_operator,
}
COPY = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
""")


class Entry:
    """An entry point whose module does ``what`` when it is imported: raises, or calls."""

    def __init__(self, name, what):
        self.name, self.value, self.what, self.loads = name, f"{name}.module", what, 0

    def load(self):
        self.loads += 1
        if isinstance(self.what, BaseException):
            raise self.what
        self.what()


@pytest.fixture
def install(monkeypatch):
    """Entry points of this test alone."""
    from tir.schedule.invariants import _load

    installed: dict[str, list[Entry]] = {}
    monkeypatch.setattr(metadata, "entry_points", lambda group: installed.get(group, []))

    def forget():
        extension._import.cache_clear()
        _load.cache_clear()

    def add(group, *entries):
        installed.setdefault(group, []).extend(entries)
        forget()

    yield add
    monkeypatch.undo()
    forget()


def said(call) -> str:
    with pytest.raises((tir.TirError, LookupError, ValueError, AttributeError)) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.filterwarnings("ignore:the package that provides")
@pytest.mark.parametrize("error", BROKEN)
@pytest.mark.parametrize("group", LOOKUPS)
def test_the_second_lookup_says_what_the_first_said(install, group, error):
    entry = Entry("aaa", BROKEN[error])
    install(group, entry)
    first = said(LOOKUPS[group])
    what = group.partition(".")[2]
    assert f"the package that provides {what} 'aaa' (aaa.module) fails: {error}: " in first
    assert "no_such_" in first
    assert [said(LOOKUPS[group]) for _ in range(2)] == [first, first] and entry.loads == 1


@pytest.mark.filterwarnings("ignore:the package that provides")
@pytest.mark.parametrize("order", [0, 1])
def test_a_module_that_fails_leaves_out_nothing_of_the_others(install, order):
    def registers():
        @func_pass
        def pass_of_another(func, ctx=None):
            return func

    entries = [Entry("aaa", ValueError("boom")), Entry("bbb", registers)]
    install(extension.PASSES, *entries[:: 1 if order == 0 else -1])
    try:
        assert tir.transform.find("pass_of_another") is tir.transform.find("pass_of_another")
    finally:
        PASSES.pop("pass_of_another", None)


@pytest.mark.parametrize("error", BROKEN)
def test_no_step_is_taken_while_an_invariant_cannot_be_loaded(install, error):
    sch = tir.Schedule(COPY)
    install(extension.INVARIANTS, Entry("aaa", BROKEN[error]), Entry("bbb", lambda: None))
    for _ in range(3):
        with pytest.raises(tir.TirError, match="the package that provides invariants 'aaa'") as caught:
            sch.split("i", [None, 2])
        assert "fault inside" not in str(caught.value)
        with pytest.raises(tir.TirError, match="the package that provides invariants 'aaa'"):
            sch.can.split("i", [None, 2])
        with pytest.raises(tir.ScheduleError, match="nowhere"):
            sch.fuse("i", "nowhere")
    tir.assert_structural_equal(sch.mod, tir.IRModule.of(COPY))


def test_rules_of_the_tuner_are_left_out_with_a_warning_each_time(install):
    from tir.tune.space import rules_of

    install(extension.TUNE_RULES, Entry("aaa", RuntimeError("boom")))
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="tune_rules 'aaa' .aaa.module. fails: RuntimeError: boom"):
            assert rules_of(tir.Target("llvm"))


def test_an_interrupted_import_is_tried_again(install):
    entry = Entry("aaa", KeyboardInterrupt())
    install(extension.PASSES, entry)
    with pytest.raises(KeyboardInterrupt):
        tir.transform.find("no_such_pass")
    entry.what = lambda: None
    assert "fails" not in said(lambda: tir.transform.find("no_such_pass")) and entry.loads == 2


def test_another_thread_waits_for_the_invariants(install):
    started, go_on, order = threading.Event(), threading.Event(), []

    def slow():
        started.set()
        assert go_on.wait(10)
        order.append("loaded")

    def step():
        tir.Schedule(COPY).split("i", [None, 2])
        order.append("step")

    install(extension.INVARIANTS, Entry("aaa", slow))
    threads = [threading.Thread(target=step) for _ in range(2)]
    threads[0].start()
    assert started.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    assert order == []
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["loaded", "step", "step"]


def test_a_module_may_take_steps_while_it_is_imported(install):
    taken = []
    install(extension.INVARIANTS, Entry("aaa", lambda: taken.append(tir.Schedule(COPY).split("i", [None, 2]))))
    tir.Schedule(COPY).split("i", [None, 2])
    assert len(taken) == 1


def test_installed_packages_are_found_whatever_fails_before_them(tmp_path):
    for name, text in {
        "aaa": "raise ImportError('no such lib')",
        "bbb": """
from tir.analysis.index import index_of
from tir.schedule.invariants import Problem, invariant

@invariant()
def two_loops(after, delta):
    for block in index_of(after).blocks.values():
        yield Problem(block.name, "bbb allows no further loop", excess=len(block.all_loops()))
""",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / f"{name}-1.dist-info").mkdir()
        (tmp_path / f"{name}-1.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (tmp_path / f"{name}-1.dist-info/entry_points.txt").write_text(f"[tir.invariants]\n{name} = {name}\n")
    program = """
import tir
sch = tir.Schedule(tir.library.rows.row_sum(4, 8))
for _ in range(2):
    try: sch.split("i", [None, 2]); print("accepted")
    except tir.TirError as error: print(repr(str(error)))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    def lines() -> list[str]:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, cwd=tmp_path)
        return done.stdout.splitlines() or [done.stderr]

    assert lines() == [repr("the package that provides invariants 'aaa' (aaa) fails: ImportError: no such lib")] * 2
    (tmp_path / "aaa.py").write_text("")
    assert [("bbb allows no further loop" in line) for line in lines()] == [True, True]
