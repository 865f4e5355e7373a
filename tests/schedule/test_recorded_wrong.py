"""Steps and functions of TOPI with arguments beside the right ones: what each answers, as in ``golden/texts/wrong.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("wrong"))
def test_answer_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("wrong", name, request.config.getoption("--update-golden"))
