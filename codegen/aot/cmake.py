"""A saved file as a target of CMake."""

from __future__ import annotations

import os
import re
from pathlib import Path

_KINDS = {".a": "STATIC", ".o": "INTERFACE"}  # of an imported target; the others are shared libraries


def cmake_file(name: str, at: Path, library: Path, header: Path | None, needs_openmp: bool) -> str:
    """The text of the file ``at``, which defines the target ``name`` for ``library``: a program that is linked with it finds the
    ``header``, and is linked with what the library needs."""
    kind = _KINDS.get(library.suffix, "SHARED")
    needed = ["m", *(["OpenMP::OpenMP_C"] if needs_openmp and kind != "SHARED" else [])]
    properties = {}
    if kind == "INTERFACE":
        needed.insert(0, _place(at, library))
    else:
        properties["IMPORTED_LOCATION"] = _place(at, library)
    if header is not None:
        properties["INTERFACE_INCLUDE_DIRECTORIES"] = _place(at, header.parent)
    properties["INTERFACE_LINK_LIBRARIES"] = ";".join(needed)
    lines = [f'    {key} "{value}"' for key, value in properties.items()]
    find = ["find_package(OpenMP REQUIRED COMPONENTS C)"] if "OpenMP::OpenMP_C" in needed else []
    return "\n".join(
        [
            f"# include(…/{at.name}), then target_link_libraries(program PRIVATE {name})",
            *find,
            f"add_library({name} {kind} IMPORTED)",
            f"set_target_properties({name} PROPERTIES",
            *lines,
            ")\n",
        ]
    )


def _place(at: Path, path: Path) -> str:
    """``path`` from the folder of the file ``at``, in a quoted argument, where a list has no semicolons but its own."""
    relative = os.path.relpath(path.resolve(), at.resolve().parent)
    return "${CMAKE_CURRENT_LIST_DIR}/" + re.sub(r'(["\\$;])', r"\\\1", relative)
