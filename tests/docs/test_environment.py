"""The page of environment variables has every variable that the packages read, and says what the table in the code says."""

from __future__ import annotations

import re
from pathlib import Path

from tir.config import VARIABLES

ROOT = Path(__file__).parents[2]


def test_every_variable_that_is_read_is_in_the_table():
    read = set()
    for file in [*ROOT.glob("tir/**/*.py"), *ROOT.glob("codegen/**/*.py")]:
        text = file.read_text(encoding="utf-8")
        read.update(re.findall(r"""environ(?:\.get\(|\[)"(\w+)\"""", text), re.findall(r"""_flag\("(\w+)\"""", text))
        read.update(re.findall(r"""["'](\w+)["'] (?:not )?in os\.environ""", text))
    assert read - {"PYTHONPATH"} == VARIABLES.keys()


def test_the_page_is_the_table():
    page = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, flags=re.M)
    assert dict(rows) == VARIABLES
