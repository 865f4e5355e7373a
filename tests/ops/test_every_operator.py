"""Every operator of the table, every case: the executor and generated code give what NumPy gives in float64."""

from __future__ import annotations

import inspect

import pytest

from tir import ops


@pytest.mark.parametrize("name", ops.operators())
def test_every_case(name):
    ops.check(name)


@pytest.mark.parametrize("name", ops.operators())
def test_a_reference_takes_the_parameters_of_its_operator_in_order(name):
    operator = ops.operators()[name]
    given = inspect.BoundArguments(operator.signature, dict.fromkeys(operator.signature.parameters, ()))
    inspect.signature(operator.reference).bind(*given.args, **given.kwargs)
