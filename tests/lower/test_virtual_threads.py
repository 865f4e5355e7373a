"""What differs between virtual threads, in whatever form, is each one's own; what does not is done once."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tir
from tir.script import parse
from tir.script import tir as T
from tir.transform import inject_virtual_thread

PROGRAM = """
@T.prim_func
def f(A: T.Buffer((3, 8), "int32"), O: T.Buffer((3, 8), "int32")):
    v = T.launch_thread("vthread.x", 3)
    memory = T.allocate([3], "int32", "local")
    S = T.decl_buffer((3,), "int32", data=memory, scope="local")
    S[0] = 1
    S[1] = 2
    S[2] = 3
"""
FORMS = {
    "a value": "S[0] = v",
    "a load": "S[0] = A[v, 0]",
    "a place": "S[v] = 7",
    "a place and what it held": "S[v] = S[v] + 7",
    "a condition": "if v == 1:\n    S[0] = 5",
    "a condition on data": "if A[v, 0] > 4:\n    S[0] = 5",
    "an alternative": "if v == 1:\n    S[0] = 5\nelse:\n    S[0] = 6",
    "a condition around a loop": "if v == 1:\n    for k in range(2):\n        S[0] = S[0] + 4",
    "a condition in a loop": "for k in range(3):\n    if v == k:\n        S[0] = S[0] + k + 10",
    "two conditions": "if A[0, 0] > 0:\n    if v > 0:\n        if A[0, 1] > 0:\n            S[0] = 9",
    "an extent": "for k in range(v + 1):\n    S[0] = S[0] + 2",
    "a start": "for k in range(v, 3):\n    S[0] = S[0] + 2",
    "a while loop": "while S[0] < v + 3:\n    S[0] = S[0] + 1",
    "a while loop and another value": "while S[0] < v + 3:\n    S[1] = S[1] + 1\n    S[0] = S[0] + 1",
    "a name": "w: T.int32 = v * 2\nS[0] = w",
    "a name of a load": "w: T.int32 = A[v, 1]\nif w > 4:\n    S[0] = 8",
    "a name of a name": "w: T.int32 = v\nx: T.int32 = w + 1\nS[0] = x",
    "one copied to another": "S[0] = v\nS[1] = S[0]\nif S[1] > 0:\n    S[2] = 4",
    "a call": "S[0] = T.popcount(v + 5)",
    "a call with a name": "w: T.int32 = v + 5\nS[0] = T.popcount(w)",
    "nothing": "S[0] = A[0, 0]",
}


@pytest.mark.parametrize("form", FORMS)
def test_each_virtual_thread_has_its_own(form):
    kept = "\nO[v, 0] = S[0]\nO[v, 1] = S[1]\nO[v, 2] = S[2]"
    func = parse(PROGRAM + textwrap.indent(FORMS[form] + kept, "    "))
    done = inject_virtual_thread(func)
    assert "vthread" not in done.script()
    data = np.arange(24, dtype="int32").reshape(3, 8) % 7
    results = []
    for program in (func, done):
        results.append(np.zeros((3, 8), "int32"))
        tir.interp.run(program, data, results[-1])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("form", FORMS)
def test_one_copy_where_nothing_differs(form):
    text = inject_virtual_thread(parse(PROGRAM + textwrap.indent(FORMS[form], "    "))).script()
    assert ("S[0] = 1" in text) == (form == "nothing")


def test_a_pure_call_leaves_shared_memory_shared():
    program = (
        PROGRAM.replace('"local"', '"shared"')
        + """
    S[v] = A[v, 0]
    O[v, 0] = T.call_pure_extern("int32", "last_of", memory, v)
"""
    )
    text = inject_virtual_thread(parse(program)).script()
    assert 'S = T.decl_buffer((3,), "int32", data=memory)' in text and '"last_of", memory, v' in text


def test_no_virtual_threads_do_nothing():
    func = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), O: T.Buffer((2,), "int32")):
    for v in T.thread_binding(0, thread="vthread.x"):
        for z in T.thread_binding(2, thread="threadIdx.z"):
            with T.block("O"):
                vi = T.axis.spatial(2, z)
                O[vi] = A[vi]
""")
    result = np.zeros(2, "int32")
    tir.build(func, "cuda-sim")(np.ones(2, "int32"), result)
    assert result.tolist() == [0, 0]


HANDED = {
    "a pointer": 'T.evaluate(T.call_extern("helper", S.data, dtype="int32"))',
    "a pointer in an expression": 'T.evaluate(T.call_extern("helper", T.reinterpret("handle", S.data), dtype="int32"))',
    "a name of a pointer": 'p: T.handle("int32", "local") = S.data\nT.evaluate(T.call_extern("helper", p, v, dtype="int32"))',
}


@pytest.mark.parametrize("form", HANDED)
def test_a_pointer_to_what_each_has_for_itself_is_not_passed_on(form):
    func = parse(PROGRAM + textwrap.indent("S[0] = v\n" + HANDED[form], "    "))
    with pytest.raises(tir.BuildError, match="takes a pointer to `memory`, which is private to each virtual thread"):
        inject_virtual_thread(func)


def test_a_name_of_a_pointer_makes_its_memory_private():
    func = parse(PROGRAM + textwrap.indent(HANDED["a name of a pointer"], "    "))
    with pytest.raises(tir.BuildError, match="private to each virtual thread"):
        inject_virtual_thread(func)


VIEWS = {
    "a part": ('Q = T.decl_buffer((2,), "int32", data=memory, scope="local", elem_offset=1)', "Q[0] = v"),
    "the whole": ('Q = T.decl_buffer((3,), "int32", data=memory, scope="local")', "Q[1] = v"),
    "smaller elements": ('Q = T.decl_buffer((2,), "int16", data=memory, scope="local")', 'Q[0] = T.Cast("int16", v)'),
    "an element": ("", 'T.evaluate(T.call_extern("add_ten", T.address_of(S[1]), v, dtype="int32"))'),
    "an access pointer": ("", 'T.evaluate(T.call_extern("add_ten", S.access_ptr("rw"), v, dtype="int32"))'),
    "a name of an element": (
        'p: T.handle("int32", "local") = T.address_of(S[1])',
        'T.evaluate(T.call_extern("add_ten", p, v, dtype="int32"))',
    ),
}


@pytest.mark.parametrize("form", VIEWS)
def test_views_are_of_the_memory_of_their_virtual_thread(form):
    def add_ten(memory, v):
        memory[0] += 10 + v

    tir.interp.register_extern("add_ten", add_ten)
    lines = [line for line in VIEWS[form] if line]
    kept = ["O[v, 0] = S[0]", "O[v, 1] = S[1]", "O[v, 2] = S[2]"]
    func = parse(PROGRAM + textwrap.indent("\n".join([*lines, *kept]), "    "))
    results = []
    for program in (func, inject_virtual_thread(func)):
        results.append(np.zeros((3, 8), "int32"))
        tir.interp.run(program, np.zeros((3, 8), "int32"), results[-1])
    np.testing.assert_array_equal(*results)


def test_an_update_of_common_memory_is_made_by_each_virtual_thread():
    """Also where nothing of it tells them apart."""

    @T.prim_func
    def main(H: T.Buffer((2,), "int32")):
        for v in T.thread_binding(2, thread="vthread.x"):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("H"):
                    vv, vi = T.axis.remap("SS", [v, i])
                    T.reads(H[vi % 2])
                    T.writes(H[vi % 2])
                    T.atomic_add(T.address_of(H[vi % 2]), 1, dtype="int32")

    found = np.zeros(2, "int32")
    tir.build(main, "cuda-sim")(found)
    np.testing.assert_array_equal(found, [4, 4])
