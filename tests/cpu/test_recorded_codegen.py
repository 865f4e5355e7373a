"""Code generation: LLVM assembly and CUDA C of many programs, as recorded in ``golden/texts/codegen.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("codegen"))
def test_program_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("codegen", name, request.config.getoption("--update-golden"))
