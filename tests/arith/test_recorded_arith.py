"""Scalar integers: simplified expressions, bounds, iterator maps, as recorded in ``golden/texts/arith.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("arith"))
def test_expression_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("arith", name, request.config.getoption("--update-golden"))
