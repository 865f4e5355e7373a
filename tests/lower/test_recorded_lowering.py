"""Lowered programs and code, of golden cases and examples, as recorded in ``golden/texts/lowering.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("lowering"))
def test_lowered_program_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("lowering", name, request.config.getoption("--update-golden"))
