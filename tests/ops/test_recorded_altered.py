"""Operators with arguments that are a little other: what they make, and their errors, as recorded in ``golden/texts/altered.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("altered"))
def test_altered_arguments_make_what_is_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("altered", name, request.config.getoption("--update-golden"))
