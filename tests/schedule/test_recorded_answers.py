"""Steps asked of every loop and block: what each answers, as recorded in ``golden/texts/answers.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("answers"))
def test_answers_are_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("answers", name, request.config.getoption("--update-golden"))
