"""Kernels on the simulator: their source, reports and results, as recorded in ``golden/texts/simulator.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("simulator"))
def test_simulated_kernel_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("simulator", name, request.config.getoption("--update-golden"))
