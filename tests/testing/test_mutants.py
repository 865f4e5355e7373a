"""The mutation test of the tests: which mutants there are, and that tests kill what they see."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tools import mutants
from tests.tools.mutant_runner import Limits, compares_texts, run
from tests.tools.mutant_sites import mutants_of
from tests.tools.mutants import ROOMS, Result, draw, is_read_later, load, stale, summary
from tests.tools.related_tests import RelatedTests

SOURCE = '''"""A docstring with 3 and < in it."""

KINDS = {"a": 1, "b": 2}


def smaller(a: int, b: int = 2) -> bool:
    """Not 5 either."""
    assert a != 7
    if not a and b > 3:
        return a is b
    if a in (1, 2, 4):
        raise ValueError("less than " + str(6))
    print(a)
    return [x * 4 for x in (min(a, 8),) if x in {b, a}] < [f"{a - b}"]
'''


def test_each_kind_of_mutant():
    texts = {m.applied_to(SOURCE) for m in mutants_of("m.py", SOURCE)}
    for new in [
        "if (not (not a and b > 3))", "bool(a) and", "not a or b", "b >= 3", "b > 4", "a is not b", "x + 4", "x * 5",
        "if (not (x in", "x not in {b", "] <= [", "a not in (1", "in (1, 2,):", "in (2, 4,):", "if False:", "    pass\n    return",
        "max(a, 8)", "min(a, 9)", "x in {b}", "x in {a}", '= {"a": 1}', '= {"b": 2}', '{"a": 2, "b"', '"b": 3}',
    ]:  # fmt: skip
        assert any(new in text for text in texts), new
    # nothing in docstrings, annotations, defaults, assertions, errors and texts
    kept = ("3 and <", "5 either", "a != 7", "{a - b}", "a: int, b: int = 2", '"less than " + str(6)')
    assert all(part in text for text in texts for part in kept)


def test_the_rooms_are_the_whole_product():
    files = [file for room in ROOMS.values() for file in room]
    product = {*mutants.ROOT.glob("tir/**/*.py"), *mutants.ROOT.glob("codegen/**/*.py")}
    assert len({*files}) == len(files) and {mutants.ROOT / file for file in files} == product
    assert {"core", "legality", "codegen", "graph", "importers", "cli", "notebook", "testing"} <= {*ROOMS}
    assert "tir/analysis/dependence/equivalence.py" in ROOMS["legality"] and "tir/stmt.py" in ROOMS["core"]


def test_as_many_mutants_of_each_room():
    rooms = ["legality", "arith"]
    chosen = draw(mutants.ROOT, rooms, 6, seed=3)
    assert chosen == draw(mutants.ROOT, rooms, 9, seed=3)[:6] != draw(mutants.ROOT, rooms, 6, seed=4)
    assert [room for room, _ in chosen] == rooms * 3
    assert all(mutant.file in ROOMS[room] for room, mutant in chosen)


def test_what_only_imports_read_is_not_changed(tmp_path):
    (tmp_path / "tests").mkdir()
    texts = {
        "tir/a.py": "ONE, TWO = 1, 2\nTHREE = TWO + 1\ndef f(x=THREE):\n    return ONE\n",
        "tir/b.py": "FOUR = 4\ndouble = lambda: FOUR\n",
        "tests/test_a.py": "from tir.a import FIVE\n",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutants, "ROOMS", {"core": ["tir/a.py", "tir/b.py"]})
        for name, text in texts.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        read = [name for name in ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX") if is_read_later(tmp_path, name)]
    assert read == ["ONE", "FOUR", "FIVE"]


PROGRAM = """
from functools import lru_cache

from tir.script import tir as T

LIMITS = {"least": 3, "most": 5}


def sign(x):
    if x < 0:
        return -1
    return 1


@lru_cache(None)
def within(x):
    return LIMITS["least"] <= x <= LIMITS["most"]


def spin(n):
    while n:
        n = n - 1
    return n


double = lambda x: x * 2


def program():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        A[0] = 7
        T.evaluate(9)

    return f


def unused():
    return 4 + 4
"""
TESTS = """
from mutated_program import double, program, sign, spin, within


def test_sign():
    assert sign(-2) == -1 and sign(2) == 1


def test_within():
    assert within(3) and not within(2)


def test_double():
    assert double(2) == 4


def test_spin():
    assert spin(3) == 0


def test_program():
    assert "[0] = 7" in program().script()


def test_that_fails():
    assert sign(0) == 0
"""


TABLE = 'LIMITS = {"least": 3, "most": 5}'
OUTCOMES = {
    "if x < 0: => if False:": ("killed", "test_sign"),
    "if x < 0: => if x <= 0:": ("survived", "1 tests"),  # test_that_fails is not used
    "return 4 + 4 => return 4 - 4": ("uncovered", ""),
    "n = n - 1 => n = n + 1": ("killed", "test_spin (no end)"),
    "double = lambda x: x * 2 => double = lambda x: x + 2": ("survived", "1 tests"),
    "double = lambda x: x * 2 => double = lambda x: x * 3": ("killed", "test_double"),
    "A[0] = 7 => A[0] = 8": ("killed", "test_program"),
    "A[0] = 7 => A[1] = 7": ("killed", "test_program"),
    "T.evaluate(9) => T.evaluate(10)": ("survived", "1 tests"),
    TABLE + ' => LIMITS = {"least": 3, "most": 6}': ("survived", "1 tests"),
    TABLE + ' => LIMITS = {"least": 4, "most": 5}': ("killed", "test_within"),
    TABLE + ' => LIMITS = {"least": 3}': ("killed", "test_within"),
}
# what a mutant survives with a map that has one test says nothing: the other tests of its files are tried
AGAIN = {
    "if x < 0: => if x <= 0:": ("survived", "5 tests"),
    "double = lambda x: x * 2 => double = lambda x: x * 3": ("killed", "test_double"),
}


def write_outcomes(folder: Path):
    """The outcomes of the mutants of PROGRAM in ``folder``; then of two of them with a map that has one test."""
    sys.path.insert(0, str(folder))
    store, every = folder / "coverage.pickle", mutants_of("mutated_program.py", PROGRAM)

    def outcomes(names, limits):
        found = {}

        def record(mutant, outcome, by):
            found[mutant.key(PROGRAM).partition(": ")[2]] = outcome, by.partition("::")[2] or by

        chosen = [m for m in every if m.key(PROGRAM).partition(": ")[2] in names]
        run(folder, chosen, [str(folder)], ["mutated_program.py"], store, limits, record)
        return found

    found = outcomes(OUTCOMES, Limits(0.5, 60))
    forgotten(store)
    (folder / "found.pickle").write_bytes(pickle.dumps((found, outcomes(AGAIN, Limits(0.5, 60, measuring=-1)))))


def forgotten(store):
    """All tests of a map but the one of ``sign``."""
    coverage = pickle.loads(store.read_bytes())
    coverage.tests = {name: test for name, test in coverage.tests.items() if name.endswith("test_sign")}
    store.write_bytes(pickle.dumps(coverage))


def test_outcomes(tmp_path):
    """In a process of its own: children are copied fast from a small one, whose caches no other test needs."""
    (tmp_path / "mutated_program.py").write_text(PROGRAM)
    (tmp_path / "test_mutated_program.py").write_text(TESTS)
    script = f"import pathlib, test_mutants as t; t.write_outcomes(pathlib.Path({str(tmp_path)!r}))"
    places = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"PYTHONPATH": places})
    assert pickle.loads((tmp_path / "found.pickle").read_bytes()) == (OUTCOMES, AGAIN)
    assert (tmp_path / "mutated_program.py").read_text() == PROGRAM


def test_the_score_leaves_out_equivalent_mutants(tmp_path):
    results = [Result("a", "arith", "killed", "t"), Result("b", "arith", "survived", "3 tests")]
    results.append(Result("c", "codegen", "survived", "1 tests"))
    lines = summary(results, {"c"}).splitlines()
    assert lines[1].split() == ["arith", "1", "1", "0", "0", "0", "50.0%"]
    assert lines[2].split() == ["codegen", "0", "0", "0", "0", "1"]
    path = tmp_path / "results.jsonl"
    later = {**vars(results[1]), "outcome": "killed"}
    path.write_text("\n".join(json.dumps(r) for r in (*map(vars, results), later)))
    assert load(path)["b"].outcome == "killed"


def test_some_tests_decide_no_survivor(capsys):
    with pytest.raises(SystemExit):
        mutants.main(["tests/arith"])
    assert "--again" in capsys.readouterr().err


def test_equivalent_mutants_are_mutants_of_the_code():
    known = mutants.equivalents()
    assert stale(mutants.ROOT, known) == []
    assert all(reason.strip() for reason in known.values())
    assert stale(mutants.ROOT, ["tir/dtype.py:gone: a => b"]) == ["tir/dtype.py:gone: a => b"]


def test_mutants_of_the_same_text_have_keys_of_their_own():
    source = "def f(x):\n    if x:\n        return True\n    return True\n"
    keys = [mutant.key(source) for mutant in mutants_of("m.py", source)]
    assert len({*keys}) == len(keys)
    assert {"m.py:f: return True => return False", "m.py:f: return True => return False (2)"} <= {*keys}


@dataclass(eq=False)
class Item:
    function: Callable[[], None]
    path: Path


def test_tests_about_the_changed_code_come_first(tmp_path):
    def peeled():
        """The condition of the first iteration is peeled off the loop."""

    def shuffled():
        """Lanes of a vector in another order."""

    file = tmp_path / "test_loops.py"
    file.write_text("")
    items = [Item(shuffled, file), Item(peeled, file), Item(shuffled, file)]
    source = "def peel(loop):\n    return loop.min == 0 and uses(loop.condition)\n"
    mutant = mutants_of("loops.py", source)[0]
    related = RelatedTests(items)  # type: ignore[arg-type]
    assert related.of(mutant, source, items, 1) == [items[1]]
    assert related.of(mutant, source, items, 2) == [items[1], items[0], items[2]]
    assert related.of(mutant, source, items[2:], 2) == [items[2]]


def test_of_the_tests_of_a_function_those_come_first_whose_parameters_name_what_is_changed():
    def every_operator(name):
        """Checks an operator that reduces rows: window, step."""

    @dataclass(frozen=True)
    class Spec:
        id: str

    @dataclass(frozen=True)
    class Item:
        callspec: Spec
        function: Callable = every_operator
        path: Path = Path(__file__)

    items = [Item(Spec(name)) for name in ("nn.relu", "average", "min_pool2d", "max_pool2d", "nn.max_window")]
    source = "def max_pool2d(x):\n    pass\n\n\ndef _max_window(step):\n    return step + 1\n"
    (mutant, *_) = mutants_of("tir/pool.py", source)
    names = [item.callspec.id for item in RelatedTests(items).of(mutant, source, items, 1)]  # type: ignore[arg-type]
    assert names == ["nn.max_window", "max_pool2d", "min_pool2d", "nn.relu", "average"]


def test_tests_that_compare_all_that_they_make_are_known_by_what_they_import():
    tables, texts, plain = ({"outcomes": 1}, {"recorded_texts": 1, "pytest": 1}, {"pytest": 1, "np": 1})
    found = [compares_texts(SimpleNamespace(module=SimpleNamespace(**names))) for names in (tables, texts, plain)]
    assert found == [True, True, False]
    assert not compares_texts(object())  # a document has no module
