"""What operators refuse, each beside what is just legal."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import tir
from tir import ops, te, topi
from tir.ops import registry
from tir.ops.cases import arg


def t(*shape, dtype="float32", name="x"):
    return te.placeholder(shape, dtype, name=name)


def i(*shape, dtype="int32"):
    return te.placeholder(shape, dtype, name="at")


CASES = [
    (lambda: ops.reinterpret(t(4), "uint32"), lambda: ops.reinterpret(t(4), "uint16"), "float32 has 32 bits, and uint16 16"),
    (lambda: ops.reinterpret(t(4, dtype="int8"), "uint8"), lambda: ops.reinterpret(t(4, dtype="int8"), "bool"), "int8 has 8 bits, and bool"),
    (lambda: ops.full_like(t(4), t(name="v")), lambda: ops.full_like(t(4), t(1)), r"value has shape \(1,\), which is not \(\)"),
    (lambda: ops.fixed_point_multiply(i(4), 3, 1), lambda: ops.fixed_point_multiply(t(4), 3, 1), "a product in fixed point is of int32, but `x` is float32"),
    (lambda: ops.take(t(2, 5), i(2, 3), 1, batch_dims=1), lambda: ops.take(t(2, 5), i(3, 3), 1, batch_dims=1), r"the first 1 dimensions of \(2, 5\) and \(3, 3\) differ"),
    (lambda: ops.take(t(2, 5), i(2), 1, batch_dims=1), lambda: ops.take(t(2, 5), i(2), 0, batch_dims=1), "1 dimensions of a batch stand before axis 0"),
    (lambda: ops.take(t(2, 5), i(2), 1, batch_dims=0), lambda: ops.take(t(2, 5), i(2), 1, batch_dims=-1), "-1 dimensions of a batch stand before axis 1"),
    (lambda: ops.take(t(2, 5, 3), i(2), 2, batch_dims=1), lambda: ops.take(t(2, 5, 3), i(2), 2, batch_dims=2), "2 dimensions of a batch stand before axis 2"),
    (lambda: ops.gather_nd(t(2, 5), i(1, 2), batch_dims=1), lambda: ops.gather_nd(t(2, 5), i(1, 3), batch_dims=1), r"the batch is \(2,\), and \(3,\) of the indices"),
    (lambda: ops.gather_nd(t(2, 5), i(2, 7)), lambda: ops.gather_nd(t(2, 5), i(3, 7)), "3 indices after 0 dimensions of a batch are too many"),
    (lambda: ops.gather_nd(t(2, 5), i(2)), lambda: ops.gather_nd(t(2, 5), i()), "the tensor of indices has no dimension that numbers axes"),
    (lambda: ops.meshgrid(t(3), t()), lambda: ops.meshgrid(t(3), t(2, 2)), r"coordinates have one dimension, not the shape \(2, 2\)"),
    (lambda: ops.meshgrid(t(3), indexing="ij"), lambda: ops.meshgrid(t(3), indexing="ji"), "the indexing"),
    (lambda: ops.meshgrid(t(3)), lambda: ops.meshgrid(t(3), 4), "a grid is made of tensors, not of 4"),
    (lambda: ops.layout_transform(t(1, 8, 2, 2), "NCHW", "NCHW4c"), lambda: ops.layout_transform(t(1, 8, 2, 2), "NCHW", "NCHH4c"), "is no layout: each letter stands once"),
    (lambda: ops.layout_transform(t(1, 8, 2, 2), "NCHW", "NHWC"), lambda: ops.layout_transform(t(1, 8, 2, 2), "NCHW", "NHC4w"), "is no layout: each letter stands once, and a small one"),
    (lambda: ops.layout_transform(t(1, 8), "NC", "CN"), lambda: ops.layout_transform(t(1, 8), "NC", "Cn"), "is no layout: `n`"),
    (lambda: ops.layout_transform(t(1, 8), "NC", "NC4c"), lambda: ops.layout_transform(t(1, 8), "NC", "N4C"), "is no layout: `C`"),
    (lambda: ops.layout_transform(t(1, 2, 4), "NC4c", "NC"), lambda: ops.layout_transform(t(1, 2, 5), "NC4c", "NC"), r"`4c` of 'NC4c' has extent 5 in \(1, 2, 5\)"),
    (lambda: ops.nn.conv2d(t(1, 3, 5, 5), t(4, 3, 2, 2)), lambda: ops.nn.conv2d(t(1, 3, 5, 5), t(4, 3, 2, 2), data_layout="CNHW"), "there is no usual layout of a kernel for data in CNHW"),
    (lambda: ops.nn.conv2d(t(1, 3, 5, 5), t(4, 3, 2, 2), data_layout="NCHW"), lambda: ops.nn.conv2d(t(1, 3, 5, 5), t(4, 3, 2, 2), data_layout="NCHN"), "the layout of the data is 'NCHN'"),
    (lambda: ops.nn.conv2d(t(1, 3, 5, 5), t(4, 3, 2, 2), data_layout="NCHW"), lambda: ops.nn.conv2d(t(1, 3, 5, 5, 2), t(4, 3, 2, 2), data_layout="NCHW2x"), "the layout of the data is 'NCHW2x'"),
    (lambda: ops.nn.conv2d_transpose(t(1, 3, 5, 5), t(3, 4, 2, 2)), lambda: ops.nn.conv2d_transpose(t(1, 1, 5, 5, 4), t(4, 4, 2, 2), data_layout="NCHW4c"), "a transposed convolution takes no channels in groups"),
    (lambda: topi.nn.dense(t(5), t(4, 5)), lambda: topi.nn.dense(t(), t(4, 5)), "the data of dense has a dimension at least, but `x` is a scalar"),
    (lambda: ops.add(t(2), 3), lambda: ops.add(3, 4), "all operands are numbers of Python"),
    (lambda: ops.add(t(2), t(2)), lambda: ops.add(t(2), "x"), "an operand is a tensor or a number, not"),
    (lambda: ops.add(t(2), 3), lambda: ops.add(t(2, dtype="handle"), 3), "`x` is a tensor of handle, which no operator takes"),
    (lambda: ops.reverse_sequence(t(2, 5), i(2)), lambda: ops.reverse_sequence(t(2, 5), i(2), 0, 0), "axis 0 is to be both that of the sequence and that of the batch"),
    (lambda: ops.reverse_sequence(t(2, 5), i(5), 0, 1), lambda: ops.reverse_sequence(t(2, 5), i(3)), "there are 3 lengths for a batch of 2"),
    (lambda: ops.dft(t(2, 4), t(2, 4)), lambda: ops.dft(t(2, 4, dtype="float16"), t(2, 4, dtype="float16")), "a Fourier transform is of float32 or float64, not float16"),
    (lambda: ops.dft(t(2, 4, dtype="float64"), t(2, 4, dtype="float64")), lambda: ops.dft(i(2, 4), i(2, 4)), "a Fourier transform is of float32 or float64, not int32"),
    (lambda: ops.var(t(4), correction=1), lambda: ops.var(t(4), correction="1"), "correction is a number, not '1'"),
    (lambda: ops.broadcast_arrays(t(4), t(2, 1)), lambda: ops.broadcast_arrays(), "there is no tensor to broadcast"),
    (lambda: ops.repeat(t(2, 3), 2, 1), lambda: ops.repeat(t(2, 3), [2, 1, 1], 1), r"all elements are repeated as often: \[2, 1, 1\] is not one number"),
    (lambda: ops.unravel_index(i(2), (3, 4)), lambda: ops.unravel_index(i(2), (3, 0)), r"there are no elements in a tensor of shape \(3, 0\)"),
    (lambda: ops.unravel_index(i(2), (3,)), lambda: ops.unravel_index(i(2), ()), r"an index is of a shape of one dimension at least, not of \(\)"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)), ids=[said[:40] for *_, said in CASES])
def test_what_is_legal_is_made_and_what_is_not_is_refused(number):
    legal, wrong, said = CASES[number]
    legal()
    with pytest.raises((tir.TirError, TypeError)) as caught:
        wrong()
    assert re.search(said, str(caught.value)), str(caught.value)


def test_the_layout_of_a_result_in_groups():
    x, w = t(1, 1, 5, 5, 4), t(2, 1, 2, 2, 4, 3)
    assert ops.nn.conv2d_NCHWc(x, w, layout="NCHW4c").shape == (1, 2, 4, 4, 3)
    assert ops.nn.conv2d_NCHWc(x, w, layout="NCHW4c", out_layout="NCHW2c").shape == (1, 3, 4, 4, 2)
    for word, said in (
        ("NCHW4c", "the 6 output channels are not in groups of 4"),
        ("NCH", "the layout of the result is 'NCH'"),
    ):
        with pytest.raises(tir.TirError, match=said):
            ops.nn.conv2d_NCHWc(x, w, layout="NCHW4c", out_layout=word)


def test_operators_are_found_by_name_and_shown():
    assert registry.find("nn.relu").name == "nn.relu" and repr(registry.find("add")) == "Operator(add)"
    assert registry.find("add").summary.endswith(".") and "\n" not in registry.find("add").summary
    with pytest.raises(KeyError, match="no operator is named 'addd'"):
        registry.find("addd")
    with pytest.raises(ValueError, match="there are no values 'odd'; there are "):
        arg((2,), "int32", "odd")


def test_a_file_may_not_hide_its_operator(monkeypatch):
    def hidden(x):
        """Nothing."""

    hidden.__module__ = "tir.ops.hidden"
    before = dict(registry.OPERATORS)
    with pytest.raises(ValueError, match="the file of operator hidden may not have its name"):
        registry._add(SimpleNamespace(name="hidden", function=hidden, aliases=(), cases=[1]))
    with pytest.raises(ValueError, match="operator hidden has no cases to judge it by"):
        registry._add(SimpleNamespace(name="hidden", function=hidden, aliases=(), cases=[]))
    with pytest.raises(ValueError, match=r"the name add of operator hidden is taken by add \(tir\.ops\."):
        registry._add(SimpleNamespace(name="hidden", function=t, aliases=("add",), cases=[1]))
    assert before == registry.OPERATORS
