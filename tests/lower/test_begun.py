"""Lowering that goes on from where it was before: the same program, once, and only where the passes are the same."""

from __future__ import annotations

import pytest

import tir
from tir import config
from tir.function import IRModule
from tir.library import rows
from tir.transform import cpu_pipeline, simplify
from tir.transform.passes import PASSES, func_pass
from tir.transform.pipeline import go_on_from, inserted, lowered_before

FUNC, OTHER = rows.softmax(8, 16), rows.row_sum(4, 8)
MARK = func_pass(lambda func: func.with_attr("marked", 1))
PASSES.pop(MARK.name)  # other tests ask what passes there are


def begun(func: tir.PrimFunc, **attrs: int):
    """A copy of a function that goes on from its lowered program, which has attributes to be known by."""
    made, known = func.replace(), lowered_before("use_workspace", func, "llvm")
    go_on_from(made, known._replace(func=known.func.with_attr(attrs)))
    return made


def test_it_makes_the_same_program():
    mod = IRModule({"other": OTHER, "main": begun(FUNC), "again": FUNC})
    whole = IRModule({"other": OTHER, "main": FUNC, "again": FUNC})
    assert tir.lower(mod, target="llvm").script() == tir.lower(whole, target="llvm").script()


def test_it_goes_on_once():
    made = begun(FUNC, known=1)
    assert [tir.lower(made)["main"].attrs.get("known") for _ in range(2)] == [1, None]


@pytest.mark.parametrize(
    "passes",
    [
        inserted(cpu_pipeline(), {"before:simplify": MARK}),
        inserted(cpu_pipeline(), {"after:unroll_loop": simplify}),
        [p.configured(masks=False) if p.name == "vectorize_loop" else p for p in cpu_pipeline()],
        cpu_pipeline()[:5],
    ],
    ids=["another", "twice", "options", "fewer"],
)
def test_other_passes_begin_anew(passes: list):
    assert "known" not in tir.lower(begun(FUNC, known=1), passes=passes)["main"].attrs


def test_stages_that_are_verified_are_all_made():
    with config.override(verify=True):
        assert "known" not in tir.lower(begun(FUNC, known=1))["main"].attrs


def test_passes_over_whole_modules_begin_anew():
    passes = [*cpu_pipeline()[:3], lambda mod: mod]
    made, known = FUNC.replace(), lowered_before("flatten_buffer", FUNC, "llvm")
    go_on_from(made, known._replace(passes=passes, func=known.func.with_attr("known", 1)))
    assert "known" not in tir.lower(made, passes=passes)["main"].attrs


def test_functions_that_began_at_other_places_begin_with_the_fewest_passes():
    made, early = begun(FUNC), OTHER.replace()
    go_on_from(early, lowered_before("simplify", OTHER, "llvm"))
    assert (
        tir.lower(IRModule({"a": made, "b": early})).script() == tir.lower(IRModule({"a": FUNC, "b": OTHER})).script()
    )


@pytest.mark.parametrize("others", [{}, {"other": OTHER}])
def test_a_function_that_is_alone_goes_on_behind_what_inlines_functions(others: dict):
    func = tir.tune.default(FUNC, "cuda").func
    made, known = func.replace(), lowered_before("split_host_device", func, "cuda")
    go_on_from(made, known._replace(func=known.func.with_attr("known", 1)))
    lowered = tir.lower(IRModule({"main": made, **others}), target="cuda")
    assert any("known" in f.attrs for _, f in lowered.items()) != bool(others)
