"""Steps where an extent is 1, 0 or a symbol, beside what TVM 0.27 makes of them (``peer_cases``, ``golden/beside_tvm.txt``)."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from peer_cases import Case, cases

import tir
from tir.expr import GE, GT, LE, LT
from tir.function import PrimFunc
from tir.script import parse
from tir.stmt import Block
from tir.visit import rewrite

RECORDED = Path(__file__).parents[1] / "golden" / "beside_tvm.txt"

EMPTY_REDUCTION = "a block without iterations stores nothing, so that its init does not run either"
SIMPLIFIED = "an index that a step makes is simplified in the domains of the iterators"
PADDING = "what is padding is stored by a block of its own"
NO_ITERATIONS = "loops of less than two iterations carry no dependence"

# cases (patterns of their names) in which the result is meant to be another one than TVM's, and why
ANOTHER_PROGRAM = {
    "reindex/sum-2-[ns]*": EMPTY_REDUCTION,
    "cache_write/sum-1-[ns]*": EMPTY_REDUCTION,
    "blockize/sum-?-[ns]*": EMPTY_REDUCTION,
    "reindex/row-3-[ns]*": "the copy reads nothing of a buffer that is empty, where TVM's reads element 0",
    "reindex_cache_read/window-1-unit": SIMPLIFIED,
    "compute_inline/window-1-unit": SIMPLIFIED,
    "fuse/*-none": SIMPLIFIED,
    "compute_at/window-?-none": "what a loop without iterations needs is what fits into the buffer",
    "reindex_cache_*/fixed-*": "the copy runs over the domains of iterators, not over the loops around the block",
    "transform_layout/*-5-unit": PADDING,
    "transform_layout/*-5-symbol": PADDING,
    "transform_layout/fixed-5-*": PADDING,
    "cache_index/*": "TVM's tables have strides, a single one for any number of axes",
    "rfactor/*": "the partial results keep their init, also where each has one term",
    "loop_partition/*-many": "no blocks are put around the parts (docs/from_tvm.md)",
}
REFUSED_HERE = {
    "decompose_reduction/sum-?-none": EMPTY_REDUCTION,
    "decompose_reduction/matmul-1-none": EMPTY_REDUCTION,
    "rolling_buffer/*-none": "a loop without iterations moves no window",
    "vectorize/chain-1-symbol": "the number of lanes must be a constant",
}
REFUSED_THERE = {
    "reindex_cache_read/row-*": "TVM refuses an axis on which the copy repeats elements",
    "compute_at/chain-?-none": NO_ITERATIONS,
    "reverse_compute_at/chain-?-none": NO_ITERATIONS,
    "compute_inline/chain-1-none": NO_ITERATIONS,
    "reverse_compute_inline/chain-1-none": NO_ITERATIONS,
    "parallel/sum-2-unit": NO_ITERATIONS,
    "parallel/sum-2-none": NO_ITERATIONS,
}


def recorded() -> dict[str, str]:
    return dict(re.findall(r"^== (\S+)\n(.*?)(?=^== |\Z)", RECORDED.read_text(encoding="utf-8"), flags=re.M | re.S))


def expected(case: Case) -> str:
    for kind, patterns in (
        ("another program", ANOTHER_PROGRAM),
        ("refused here", REFUSED_HERE),
        ("refused there", REFUSED_THERE),
    ):
        if any(fnmatch(case.name, pattern) for pattern in patterns):
            return kind
    return "the same"


def plain(func: PrimFunc) -> PrimFunc:
    """``func`` without what does not matter here: names of blocks, and which way around comparisons are written."""

    def visit(item):
        if isinstance(item, Block):
            return item.replace(name="b")
        if isinstance(item, (GE, GT)):
            return (LE if isinstance(item, GE) else LT)(item.b, item.a)
        return None

    return rewrite(func, visit).replace(attrs={})


def found(case: Case, theirs: str) -> str:
    sch = tir.Schedule(parse(case.program))
    names = {"s": sch}
    try:
        exec(case.steps, names, names)
    except tir.ScheduleError:
        return "the same" if theirs.startswith("refused") else "refused here"
    if theirs.startswith("refused"):
        return "refused there"
    return "the same" if tir.structural_equal(plain(parse(theirs)), plain(sch.mod["main"])) else "another program"


@pytest.mark.parametrize("primitive", dict.fromkeys(case.name.split("/")[0] for case in cases()))
def test_a_step_at_the_borders_of_extents_makes_what_tvm_makes_but_for_the_differences_listed(primitive):
    theirs = recorded()
    those = [case for case in cases() if case.name.startswith(f"{primitive}/")]
    got = {case.name: found(case, theirs[case.name]) for case in those}
    assert got == {case.name: expected(case) for case in those}


def test_the_record_is_of_these_cases_and_each_listed_difference_is_one():
    names = [case.name for case in cases()]
    assert names == list(recorded())
    for pattern in (*ANOTHER_PROGRAM, *REFUSED_HERE, *REFUSED_THERE):
        assert any(fnmatch(name, pattern) for name in names), pattern
