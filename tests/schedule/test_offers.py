"""What may be done to a loop or block, as `sch.can` lists it: legal offers are accepted, the others refused for that reason."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import tir
from tests.hand_schedules import gemm
from tir import te, testing
from tir.schedule.offers import MOST_PLACES, choices, places
from tir.schedule.primitive import GROUPS, PRIMITIVES, QUERIES, primitive
from tir.script import tir as T


@T.prim_func
def chain(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, k in T.grid(16, 16):
        with T.block("D"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi, 0] = T.float32(0)
            D[vi, 0] = D[vi, 0] + B[vi, vk]


@pytest.fixture
def sch() -> tir.Schedule:
    return tir.Schedule(chain)


@pytest.mark.parametrize("place", ["B", "D", "j", "D.i", "k"])
def test_offers_say_what_the_steps_do(sch, place):
    found = sch.can(place)
    assert any(found) and not all(found)
    for offer in found:
        if offer:
            taken = sch.copy()
            getattr(taken, offer.name)(**offer.given) if "loops" not in offer.given else getattr(taken, offer.name)(
                *offer.given["loops"]
            )
            assert len(taken.history) == 2
        else:
            assert offer.reason
    assert len(sch.history) == 1 and not len(sch.trace), "asking changes nothing"
    assert [o.name for o in found] == [o.name for o in sorted(found, key=lambda o: not o)], "what is legal comes first"


@pytest.mark.parametrize("seed", range(30))
def test_every_offer_changes_the_program_or_draws(seed):
    sch = tir.Schedule(testing.random_program(seed))
    before = sch.script()
    for place in places(sch.state)[seed % 3 :: 3]:
        for offer in filter(None, sch.can(place)):
            taken = sch.copy()
            result = taken._apply_step(PRIMITIVES[offer.name], dict(offer.given))
            draws = offer.name.startswith("sample_") and result is not None
            assert draws or taken.script() != before, offer.text
            assert offer.summary.endswith(".") and offer.group in GROUPS
            assert tir.structural_equal(offer.after.mod, taken.mod) or draws


def test_every_order_of_four_loops_is_reached_by_offers():
    @T.prim_func
    def copy(A: T.Buffer((2, 3, 4, 5), "float32"), B: T.Buffer((2, 3, 4, 5), "float32")):
        for i, j, k, n in T.grid(2, 3, 4, 5):
            with T.block("B"):
                vi, vj, vk, vn = T.axis.remap("SSSS", [i, j, k, n])
                B[vi, vj, vk, vn] = A[vi, vj, vk, vn]

    start = tir.Schedule(copy)
    found = {("i", "j", "k", "n"): start}
    ahead = [start]
    while ahead:
        sch = ahead.pop()
        for place in "ijkn":
            taken = sch.copy()
            taken.reorder(*next(o.given["loops"] for o in sch.can(place) if o.name == "reorder" and o))
            order = tuple(r.name for r in taken.state.index.loops.values())
            if order not in found:
                found[order] = taken
                ahead.append(taken)
    assert len(found) == 24


def test_an_offer_has_the_group_of_its_primitive(sch):
    groups = {offer.name: offer.group for place in ("D", "k") for offer in sch.can(place)}
    assert {
        groups[name] for name in ("split", "reorder", "parallel", "cache_read", "rfactor", "blockize", "annotate")
    } == {*GROUPS}
    with pytest.raises(ValueError, match="no group 'tiles' of steps; there are order, tile, "):
        primitive(check=lambda state: None, name="no_such_step", group="tiles")
    assert "no_such_step" not in PRIMITIVES


def test_a_refused_offer_has_its_witness(sch):
    refused = next(offer for offer in sch.can("k") if offer.name == "parallel")
    assert refused.after is None and refused.witness[0] == "k=0 and k=1 both write D[0, 0]"


@pytest.mark.parametrize(
    ("extent", "first"), [(16, [None, 4]), (28, [None, 4]), (30, [None, 2]), (7, [None, 4]), (3, [None, 2])]
)
def test_a_split_is_offered_with_factors_that_divide_first(extent, first):
    A = te.placeholder((extent,), name="A")
    sch = tir.Schedule(te.create_prim_func([A, te.compute((extent,), lambda i: A[i] * 2.0, "B")]))
    offer = next(offer for offer in sch.can("i") if offer.name == "split")
    assert offer.given["factors"] == first
    sizes = [factors[1:] for factors in offer.fields[0].choices]
    assert all(0 < n < extent or extent == 2 for size in sizes for n in size)


def test_a_loop_is_told_what_it_may_become(sch):
    offers = {offer.name: offer for offer in sch.can("k")}
    assert offers["split"].text == 'split("k", factors=[None, 4])' and offers["split"]
    assert offers["tile"].text == 'tile(["k"], [4])' and offers["tile"]
    assert offers["compute_at"].given == {"block": "B", "loop": "k"}
    assert not offers["parallel"] and "cannot be parallel" in offers["parallel"].reason
    assert {f.name: f.choices[:2] for f in offers["bind"].fields}["thread_axis"] == ("blockIdx.x", "blockIdx.y")


def test_the_whole_program_at_a_glance(sch):
    shown = repr(sch.can)
    rows = {line.split()[0]: line for line in shown.splitlines()}
    assert "parallel" in rows["B.i"] and "parallel" not in rows["k"] and "compute_inline" in rows["B"]
    assert 'sch.can("B.i") has the others' in shown
    many = tir.Schedule(gemm.gemm(64, 64, 64))
    assert "more loops and blocks" in repr(many.can) and len(repr(many.can).splitlines()) == MOST_PLACES + 2


def test_an_unknown_place_is_named(sch):
    with pytest.raises(tir.ScheduleError, match="loop `x` is not in function"):
        sch.can("x")


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_a_twin_has_the_signature_and_the_docstring_of_its_primitive(sch, name):
    twin, step = getattr(sch.can, name), getattr(sch, name)
    assert list(inspect.signature(twin).parameters) == list(inspect.signature(step).parameters)
    assert inspect.signature(twin).return_annotation == "Answer"
    assert inspect.getdoc(step) in inspect.getdoc(twin)


def test_help_says_what_is_returned(sch):
    assert inspect.signature(sch.split).return_annotation == "list[LoopRV]"
    assert inspect.signature(sch.reorder).return_annotation == "None"
    assert inspect.signature(sch.get_loops).return_annotation == "list[LoopRV]"
    silent = [n for n in (*PRIMITIVES, *QUERIES) if "Plan" in str(inspect.signature(getattr(sch, n)).return_annotation)]
    assert silent == []


def test_can_is_of_the_schedule_it_stands_on(sch):
    for other in (sch.copy(), pickle.loads(pickle.dumps(sch)), copy.deepcopy(sch)):
        sch.reset()
        sch.fuse("B.i", "j")
        assert other.can.fuse("B.i", "j") and not sch.can.fuse("B.i", "j")


def test_blocks_and_loops_by_name(sch):
    assert sch["B"] == sch.get_block("B") and sch["j"] == sch.get_loops("B")[1] and sch["D.i"] == sch.get_loops("D")[0]
    with pytest.raises(tir.ScheduleError, match="not in function"):
        sch["nothing"]
    assert sch._ipython_key_completions_() == ["root", "B", "D", "B.i", "j", "D.i", "k"]
    for key in sch._ipython_key_completions_():
        sch[key]


def test_every_string_a_step_takes_can_be_listed(sch):
    new_names = {"name", "names"}
    unknown = [
        f"{step.name}.{p.name}"
        for step in PRIMITIVES.values()
        for p in step.signature.parameters.values()
        if p.annotation == "str" and p.name not in new_names and not choices(sch.state, step, p.name)
    ]
    assert unknown == []


def test_values_are_those_of_the_block(sch):
    read = PRIMITIVES["cache_read"]
    assert choices(sch.state, read, "read_buffer_index", {"block": "D"}) == ["B"]
    assert choices(sch.state, read, "read_buffer_index", {"block": sch["B"]}) == ["A"]
    assert choices(sch.state, read, "storage_scope")[:2] == ["global", "local"]
    assert choices(tir.Schedule(chain, target="cuda").state, read, "storage_scope")[:2] == ["shared", "local"]
    assert choices(sch.state, PRIMITIVES["storage_align"], "buffer_index", {"block": "D"}) == [0, 1]
    assert choices(sch.state, QUERIES["get_block"], "name") == ["root", "B", "D"]


def test_diff_before_a_step_is_empty(sch):
    assert sch.diff() == ""
    with pytest.raises(tir.ScheduleError, match="no step has been taken"):
        sch.diff(1)


def test_answers_are_shown():
    from xml.etree import ElementTree

    sch = tir.Schedule(chain)
    for answer in (sch.can.parallel("k"), sch.can.parallel("j"), sch.can.parallel(), sch.can("k"), sch.can):
        ElementTree.fromstring(f"<div>{answer._repr_html_()}</div>")
    assert ">no<" in sch.can.parallel("k")._repr_html_() and ">yes<" in sch.can.parallel("j")._repr_html_()
