"""The least a build backend can be, so that the tests install this package with nothing but pip and no network.

A package of your own uses setuptools or hatchling; only the entry points in pyproject.toml matter to tir.
"""

import re
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
INFO = "tir_extras-0.1.0.dist-info"
METADATA = "Metadata-Version: 2.1\nName: tir-extras\nVersion: 0.1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _entry_points() -> str:
    """The tables ``[project.entry-points."group"]`` of pyproject.toml, as a wheel writes them."""
    text = (HERE / "pyproject.toml").read_text()
    groups = re.findall(r'^\[project\.entry-points\."(.*?)"\]\n((?:\w+ = .*\n)+)', text, re.M)
    return "\n".join(f"[{group}]\n{lines.replace(chr(34), '')}" for group, lines in groups)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"tir_extras/{p.name}": p.read_text() for p in sorted((HERE / "tir_extras").glob("*.py"))}
    files |= {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, f"{INFO}/entry_points.txt": _entry_points()}
    files[f"{INFO}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{INFO}/RECORD"])
    name = "tir_extras-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
