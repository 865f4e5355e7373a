"""A package out of tree adds a primitive, an invariant, a pass, an intrinsic, an operator, a target and a rule by its entry points."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tir
from tir import extension

HERE = Path(__file__).parents[1] / "extension_package"


def test_the_files_of_a_package_of_ours_are_found_by_themselves(tmp_path, monkeypatch):
    """Rows of importers, operators, passes, primitives and rules: a new file of them is in no list."""
    folder = tmp_path / "ours_for_a_test"
    folder.mkdir()
    for name in ("__init__", "rows_one", "rows_two", "_rows_three", "other"):
        (folder / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    extension.load_files("ours_for_a_test", "rows_")
    assert {n for n in sys.modules if n.startswith("ours_for_a_test.")} == {
        f"ours_for_a_test.rows_{n}" for n in ("one", "two")
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package built and installed by pip into a folder of its own, offline."""
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def run(site: Path, *command: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(site), str(HERE.parents[1])])
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def test_everything_is_found_by_name(installed):
    done = run(installed, str(HERE / "use_extras.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "all seven"


def test_a_package_that_fails_is_named(installed, tmp_path):
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    (site / "tir_extras" / "targets.py").write_text("import no_such_module\n")
    done = run(site, "-c", "import tir; tir.Target('counting')")
    assert "the package that provides targets 'counting' (tir_extras.targets) fails" in done.stderr


def test_without_the_package_the_names_are_unknown():
    with pytest.raises(ValueError, match="unknown target kind 'counting'"):
        tir.Target("counting")
    with pytest.raises(KeyError, match="no pass is named 'doubling'"):
        tir.transform.find("doubling")
    assert set(extension.GROUPS) == {
        "tir.primitives",
        "tir.invariants",
        "tir.passes",
        "tir.intrinsics",
        "tir.targets",
        "tir.tune_rules",
        "tir.operators",
    }


def test_a_target_kind_is_registered_once():
    from tir.target import register_target

    with pytest.raises(ValueError, match="there already is a target kind 'llvm'"):
        register_target("llvm", lambda target: [], lambda lowered, target: None)
