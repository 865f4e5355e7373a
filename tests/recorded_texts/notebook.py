"""What a notebook shows of schedules: loop trees, footprints, pictures of accesses, and the explorer's answers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import tir
from tir.library import elementwise, rows
from tir.notebook.access_picture import access_picture
from tir.notebook.explorer import Explorer
from tir.notebook.loop_tree import before_and_after, loop_tree

from .stages import Texts, attempt

PROGRAMS = {
    "softmax": (lambda: rows.softmax(8, 32), "out"),
    "row_sum": (lambda: rows.row_sum(8, 48), "total"),
    "blur": (lambda: elementwise.blur(16, 24), "out"),
    "scale": (lambda: elementwise.scale_add(64), "out"),
    "layer_norm": (lambda: rows.layer_norm(4, 16), "out"),
}
MESSAGES: tuple[dict[str, Any], ...] = (
    {"do": "refresh"},
    {"do": "select", "place": "0"},
    {"do": "nothing"},
    {"do": "apply", "name": "split", "given": {"loop": "i", "factors": "[None, 4]"}},
    {"do": "apply", "name": "vectorize", "given": {"loop": "nowhere"}},
    {"do": "apply", "name": "no_step", "given": {}},
    {"do": "open", "pane": "program"},
    {"do": "show", "step": 9},
    {"do": "show", "step": 0},
    {"do": "undo"},
    {"do": "redo"},
    {"do": 7},
)


def shown(name: str) -> Texts:
    make, block = PROGRAMS[name]
    sch = tir.Schedule(make(), target="cuda -arch=sm_80")
    first = sch.state
    tree = loop_tree(first)
    yield "tree", f"{tree}\n{tree._repr_html_()}\n{tree.svg()}"
    loops = sch.get_loops(block)
    sch.split(loops[0], [None, 4])
    yield "change", before_and_after(tree, loop_tree(sch.state))
    for buffer in [b.name for b in sch.func.buffers()]:
        yield f"picture.{buffer}", attempt(lambda: picture(first, buffer))


def picture(state: Any, buffer: str) -> str:
    found = access_picture(state, buffer)
    return f"{found}\n{found.svg()}\n{found.beside(found)._repr_html_()}"


def explored(name: str) -> Texts:
    sch = tir.Schedule(PROGRAMS[name][0](), target="cuda -arch=sm_80")
    explorer = Explorer(sch)
    for number, message in enumerate(MESSAGES):
        explorer.handle(message)
        yield f"{number}.error", explorer.error
        while explorer.view()["pending"]:
            explorer.handle({"do": "more"})
        view = explorer.view()
        del view["answered"]  # how many answers it takes depends on the machine
        for field in [f for offer in view["offers"] for f in offer["fields"] if f["name"] == "tensor_intrin"]:
            # other tests register some of their own, and a field has a limited number
            field["choices"] = [name for name in field["choices"] if name.startswith("amx_")]
        yield f"{number}.view", json.dumps(view, sort_keys=True, default=str)


CASES = {
    **{f"shown-{name}": partial(shown, name) for name in PROGRAMS},
    **{f"explored-{name}": partial(explored, name) for name in PROGRAMS},
}
