"""What the syntactic test of moves accepts, exact sets do not refute, and runs give the same: on programs drawn around its
conditions, most of which it leaves undecided.

More seeds: ``python -m tests.analysis.test_moves_by_form FIRST COUNT``.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import numpy as np

from tests.analysis.test_tiers import agreed
from tests.prim_checks import results, schedule
from tests.tier_checks import recorded, tiers
from tir import ScheduleError
from tir.analysis.dependence.tiers import Tier

HEAD = """
@T.prim_func
def main(n: T.int32, A: T.Buffer((24, 24), "float32"), C: T.Buffer((24, 24), "float32"),
         D: T.Buffer((24, 24), "float32"), P: T.Buffer((24,), "int32")):
    B = T.alloc_buffer((24,), "float32")
    again = T.Buffer((20,), "float32", data=B.data)
"""
RANGES = ["range(4)", "range(4)", "range(4)", "range(1)", "range(1, 5)", "range(3)", "range(n)", "range(h + 1)"]
PLACES = ["{v}", "h * 4 + {v}", "{v} + h", "{v} + 1", "3 - {v}", "{v} * 2", "{v} // 2", "P[h] % 4 + {v}", "P[{v}] % 4"]
PLACES += ["T.cast(T.cast({v}, 'int8'), 'int32')", "T.max({v} - 1, 0)", "h"]
READS = ["B[v]", "B[v]", "B[v]", "B[v] + B[w]", "B[v + 1]", "B[P[v] % 4]", "B[v] + again[v]", "B[v] + A[w, v]", "B[4]"]
MADE = ["A[v, v]", "A[v, v]", "A[v, v] + D[v, v]", "A[v, v] + B[v]", "T.cast(P[v], 'float32')"]
BETWEEN = [
    ("D", "D[v, v] = 1.0"),
    ("P", "P[v] = 2"),
    ("A", "A[v, v] = C[v, v]"),
    ("B", "B[v] = 3.0"),
    ("again", "again[v] = 5.0"),
]
AFTER = [*BETWEEN, ("C", "C[v, v] = B[v]")]


def program(seed: int) -> str:
    """Mostly a copy that a loop fills and reads; each part is drawn anew with a chance that the seed draws."""
    r = random.Random(seed)
    wild = r.choice([0.05, 0.15, 0.4])

    def draw(choices: list) -> str:
        return r.choice(choices) if r.random() < wild else choices[0]

    shared, wide = r.random() < 0.8, r.random() < 0.5
    indent = "        " if shared else "    "
    lines = [HEAD.strip("\n")] + (["    for h in " + draw(RANGES[:6]) + ":"] if shared else [])

    def nest(name: str, var: str, around: str, place: str, body: str, more: str = "") -> None:
        said = (around, place) if shared else (around.replace("h + 1", "4"), place.replace("h", "2"))
        text = [f"for {var} in {said[0]}:", f'    with T.block("{name}"):']
        text += [f"        v = T.axis.spatial(24, {said[1].format(v=var)})"]
        text += [f"        w = T.axis.spatial(24, {'h' if shared else '0'})"] if name == "C" and wide else []
        text += ["        T.where(n > 1)"] if r.random() < wild / 4 else []
        text += [
            "        " + (body if wide else body.replace("w", "v")),
            *(f"    {line}" for line in more.splitlines()),
        ]
        lines.extend(indent + line for line in text)

    count, at = draw(RANGES), draw(PLACES)
    nest("B", "i", count, at, "B[v] = " + draw(MADE))
    if r.random() < wild:
        name, body = r.choice(BETWEEN)
        nest("X", "x", "range(4)", "{v}", body)
    same = r.random() > wild
    more = (
        f'with T.block("Y"):\n    v = T.axis.spatial(24, j)\n    {r.choice(AFTER)[1]}' if r.random() < wild / 2 else ""
    )
    nest("C", "j", count if same else draw(RANGES), at if same else draw(PLACES), "C[w, v] = " + draw(READS), more)
    if r.random() < wild:
        name, body = r.choice(AFTER)
        nest("Z", "z", "range(4)", "{v}", body)
    return "\n".join(lines)


MOVES = {"compute_at": ("B", "j"), "reverse_compute_at": ("C", "i")}


def judged(seed: int) -> Counter[str]:
    """The moves of the program of ``seed`` that the syntactic tests accept; fails if one changes what it computes."""
    text = program(seed)
    accepted: Counter[str] = Counter()
    for step, places in MOVES.items():
        sch = schedule(text)
        with recorded() as questions, tiers(only=[Tier.SIMPLE_BLOCK, Tier.ITERATOR_MAP]):
            try:
                getattr(sch, step)(*places)
            except ScheduleError:
                continue
        accepted[step] += 1
        for question in questions:
            agreed(question)
        for n in (0, 1, 3):
            try:
                want = results(schedule(text).mod["main"], {"n": n})
            except Exception:  # noqa: BLE001 - a program that faults has no result to keep
                continue
            for a, b in zip(want, results(sch.mod["main"], {"n": n})):
                np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=text)
    return accepted


def test_what_the_form_shows_no_exact_set_refutes():
    accepted = sum(map(judged, range(75)), Counter())
    assert all(accepted[step] > 10 for step in MOVES), accepted


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    print(sum(map(judged, range(first, first + count)), Counter()), "accepted")
