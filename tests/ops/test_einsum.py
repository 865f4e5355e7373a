"""Sums of products: what is refused, and how several tensors are contracted."""

from __future__ import annotations

import pytest

from tir import ops, te
from tir.errors import TensorExpressionError

x = te.placeholder((2, 3), name="x")

REFUSED = {
    "extents": (lambda: ops.einsum("ij,jk->ik", x, x), r"axis `j` has the extents 3 and 2"),
    "count": (lambda: ops.einsum("ij,jk->ik", x), r"is of 2 tensors, and there are 1"),
    "output": (lambda: ops.einsum("ij->ik", x), r"a label that no tensor has"),
    "rank": (lambda: ops.einsum("i->i", x), r"`i` does not name the axes of a tensor of 2 dimensions"),
    "text": (lambda: ops.einsum("ij>i", x), r"are no subscripts of einsum"),
    "ellipsis": (lambda: ops.einsum("i...->i", x), r"i...->...i"),
    "number": (lambda: ops.einsum("ij,", x, 3), r"operands is a tensor, not 3"),
    "axes": (lambda: ops.tensordot(x, x, 1), r"axis 1 of \(2, 3\) and axis 0 of \(2, 3\) differ"),
    "more axes": (lambda: ops.tensordot(x, x, 3), r"3 are not axes of \(2, 3\)"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_errors_say_what_is_wrong(what):
    call, text = REFUSED[what]
    with pytest.raises(TensorExpressionError, match=text):
        call()


def test_several_tensors_are_contracted_two_by_two():
    """A chain of products is a sum over one axis each, not over all at once."""
    a, b, c = (te.placeholder(s, name=n) for n, s in (("a", (2, 3)), ("b", (3, 4)), ("c", (4, 5))))
    made = ops.einsum("ij,jk,kl->il", a, b, c)
    first = made.op.input_tensors[0]
    assert (first.shape, len(first.op.reduce_axis), len(made.op.reduce_axis)) == ((2, 4), 1, 1)
