"""Every operator of the table, every case: the executor and generated code give what NumPy gives in float64."""

from __future__ import annotations

import pytest

from tir import ops


@pytest.mark.parametrize("name", ops.operators())
def test_every_case(name):
    ops.check(name)
