"""Nodes of ONNX: the graphs that they become, and refusals, as recorded in ``golden/texts/importers.txt``."""

from __future__ import annotations

import pytest

from tests import recorded_texts


@pytest.mark.parametrize("name", recorded_texts.cases("importers"))
def test_node_is_as_recorded(name: str, request: pytest.FixtureRequest):
    recorded_texts.check("importers", name, request.config.getoption("--update-golden"))
