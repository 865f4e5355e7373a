"""Differences of exact sets end in bounded time, also where each of isl's steps takes long."""

from __future__ import annotations

import islpy
import pytest

from tir.poly import Relation, TooLong, bounded, relation

# what the threads of an im2col kernel wrote last: with isl's limit of steps alone, this difference takes half a minute
WRITES = """
{ [i0] -> [o0] : exists (e0, e1, e2, e3, e4: 0 <= i0 <= 127 and o0 > i0 and 0 <= o0 <= 127 and -e1 + 4e3 < e4 <= 4 - e1
+ 4e3 and 8e4 >= 2 - o0 + 2e0 - 4e1 + 2e3 and 8e4 >= -o0 - 4e1 and -o0 - 8e1 <= 8e4 <= 7 - o0 - 8e1 and 8e4 <= 3 - o0 -
4e1 and 8e4 <= 3 - o0 + 2e0 - 4e1 + 2e3 and 56e4 >= -16 + 7i0 - 8o0 + 16e0 - 20e1 + 16e2 - 16e3 and -16 + 7i0 - 8o0 +
16e0 - 24e1 + 16e2 - 16e3 <= 56e4 <= -9 + 7i0 - 8o0 + 16e0 - 24e1 + 16e2 - 16e3 and 56e4 <= -13 + 7i0 - 8o0 + 16e0 -
20e1 + 16e2 - 16e3 and -28 + 13i0 - 14o0 + 32e0 - 34e1 + 30e2 - 28e3 <= 98e4 <= -27 + 13i0 - 14o0 + 32e0 - 34e1 + 30e2 -
28e3 and -223 + 97i0 - 96o0 + 224e0 - 224e1 + 224e2 - 192e3 <= 672e4 <= -192 + 97i0 - 96o0 + 224e0 - 224e1 + 224e2 -
192e3); [i0] -> [i0] : exists (e0, e1, e2, e3, e4: 0 <= i0 <= 127 and -e1 + 4e3 < e4 <= 4 - e1 + 4e3 and 8e4 >= 2 - i0 +
2e0 - 4e1 + 2e3 and 8e4 >= -i0 - 4e1 and -i0 - 8e1 <= 8e4 <= 7 - i0 - 8e1 and 8e4 <= 3 - i0 - 4e1 and 8e4 <= 3 - i0 +
2e0 - 4e1 + 2e3 and 56e4 >= -16 - i0 + 16e0 - 20e1 + 16e2 - 16e3 and -16 - i0 + 16e0 - 24e1 + 16e2 - 16e3 <= 56e4 <= -9
- i0 + 16e0 - 24e1 + 16e2 - 16e3 and 56e4 <= -13 - i0 + 16e0 - 20e1 + 16e2 - 16e3 and -28 - i0 + 32e0 - 34e1 + 30e2 -
28e3 <= 98e4 <= -27 - i0 + 32e0 - 34e1 + 30e2 - 28e3 and -223 + i0 + 224e0 - 224e1 + 224e2 - 192e3 <= 672e4 <= -192 + i0
+ 224e0 - 224e1 + 224e2 - 192e3) }
"""
LATER = """
{ [i0] -> [o0] : i0 >= 0 and o0 <= 127 and ((exists (e1, e2, e3, e4, e5, e6, e7, e8, e9, e10: -1 - i0 + 4*floor((i0)/32)
+ 2e2 <= 2e3 <= -i0 + 4*floor((i0)/32) + 2e2 and 16e3 >= -7 - 7i0 + 8e2 and 16e3 >= -3 - 7i0 - 4e1 + 8e2 and -e6 + 4e8 <
e9 <= 4 - e6 + 4e8 and 8e9 >= 2 - o0 + 2e5 - 4e6 + 2e8 and 8e9 >= -o0 - 4e6 and -o0 - 8e6 <= 8e9 <= 3 - o0 + 2e5 - 4e6 +
2e8 and i0 < e10 < o0 and 7e10 >= 9 + 8o0 - 16e5 + 24e6 - 16e7 + 16e8 + 56e9 and 13 + 8o0 - 16e5 + 20e6 - 16e7 + 16e8 +
56e9 <= 7e10 <= -4e1 + 8e2 - 16e4 and 7e10 <= 8e2 - 16e4 and 13e10 >= -1 + 12i0 + 4*floor((i0)/32) + 2e2 + 28e3 - 30e4
and 27 + 14o0 - 32e5 + 34e6 - 30e7 + 28e8 + 98e9 <= 13e10 <= 28 + 14o0 - 32e5 + 34e6 - 30e7 + 28e8 + 98e9 and 13e10 <=
12i0 + 4*floor((i0)/32) + 2e2 + 28e3 - 30e4 and 97e10 >= 96i0 + 32*floor((i0)/32) + 224e3 - 224e4 and 192 + 96o0 - 224e5
+ 224e6 - 224e7 + 192e8 + 672e9 <= 97e10 <= 223 + 96o0 - 224e5 + 224e6 - 224e7 + 192e8 + 672e9 and 97e10 <= 31 + 96i0 +
32*floor((i0)/32) + 224e3 - 224e4)) or (exists (e1, e2, e3, e4, e5, e6, e7, e8, e9: o0 > i0 and -1 - i0 +
4*floor((i0)/32) + 2e2 <= 2e3 <= -i0 + 4*floor((i0)/32) + 2e2 and 16e3 >= -7 - 7i0 + 8e2 and 16e3 >= -3 - 7i0 - 4e1 +
8e2 and 16e4 <= -7o0 - 4e1 + 8e2 and 16e4 <= -7o0 + 8e2 and -1 + 12i0 - 13o0 + 4*floor((i0)/32) + 2e2 + 28e3 <= 30e4 <=
12i0 - 13o0 + 4*floor((i0)/32) + 2e2 + 28e3 and 96i0 - 97o0 + 32*floor((i0)/32) + 224e3 <= 224e4 <= 31 + 96i0 - 97o0 +
32*floor((i0)/32) + 224e3 and -e6 + 4e8 < e9 <= 4 - e6 + 4e8 and 8e9 >= 2 - o0 + 2e5 - 4e6 + 2e8 and 8e9 >= -o0 - 4e6
and -o0 - 8e6 <= 8e9 <= 7 - o0 - 8e6 and 8e9 <= 3 - o0 - 4e6 and 8e9 <= 3 - o0 + 2e5 - 4e6 + 2e8 and -28 - o0 + 32e5 -
34e6 + 30e7 - 28e8 <= 98e9 <= -27 - o0 + 32e5 - 34e6 + 30e7 - 28e8 and -223 + o0 + 224e5 - 224e6 + 224e7 - 192e8 <=
672e9 <= -192 + o0 + 224e5 - 224e6 + 224e7 - 192e8))) }
"""


def read(text: str) -> Relation:
    return Relation(islpy.Map(text))


def test_large_systems_of_constraints_get_fewer_steps():
    with pytest.raises(TooLong):
        read(WRITES).subtract(read(LATER))


def test_small_ones_keep_what_the_question_has_left():
    rows, columns = (read(f"{{ [i, j] -> [k] : 0 <= i, j < 8 and k = {k} }}") for k in ("8i + j", "i + 8j"))
    limit = islpy.DEFAULT_CONTEXT.get_max_operations
    with bounded():
        assert not rows.subtract(columns).is_empty() and limit() == relation.MOST_OPERATIONS
        with pytest.raises(TooLong):
            read(WRITES).subtract(read(LATER))
        assert limit() == relation.MOST_OPERATIONS
    assert limit() == 0
