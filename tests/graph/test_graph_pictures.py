"""Pictures of graphs and of plans: what stands in them, and where."""

from __future__ import annotations

import xml.etree.ElementTree as Tree
from dataclasses import replace

import numpy as np
import pytest

from tir.graph import Builder, ModelError, Plan, Value, groups, plan
from tir.graph.model_picture import BAR, LANE, ROW, _lanes, shortened, size
from tir.graph.profile import Profile


def small():
    b = Builder()
    x, w = b.input("x", (4, 8)), b.constant(np.ones((8, 300), "float32"), "w")
    y = b.call("matmul", x, w)
    flat = b.call("reshape", b.call("cumsum", y, 1), (1200,))
    return b.graph({"result": b.call("cumsum", flat, 0), "kept": y})


def drawn(svg):
    picture = Tree.fromstring(svg)
    return {kind: [e for e in picture.iter() if e.tag.endswith(kind)] for kind in ("rect", "text", "title", "path")}


def texts(svg):
    return [e.text for e in drawn(svg)["text"]]


def test_a_graph_is_drawn_with_its_kernels_and_bytes():
    graph = small()
    assert texts(graph.svg()) == [
        "x: float32[4, 8]", "128 B",
        "matmul", "[4, 300] 4.8 kB = kept, weights 9.6 kB",
        "cumsum", "[4, 300] 4.8 kB",
        "reshape", "[1200] 4.8 kB",
        "cumsum", "[1200] 4.8 kB = result",
    ]  # fmt: skip
    assert graph._repr_html_() == graph.svg()
    assert replace(graph, constants={}).svg() == graph.svg(), "weights that a compiled model has in panels"
    found = drawn(graph.svg())
    assert [float(e.attrib["y"]) for e in found["rect"]] == [3 + n * ROW for n in range(5)]
    assert [e.attrib.get("fill-opacity") for e in found["rect"]] == [None, "0.25", "0.25", "0.08", "0.25"]
    assert found["title"][3].text.endswith("a view: no kernel") and "matmul(a=%x, b=%w)" in found["title"][1].text
    assert [e.attrib["d"] for e in found["path"]] == [
        f"M23 {n * ROW + 17}H{23 - LANE}V{(n + 1) * ROW + 9}M{23 - LANE} {(n + 1) * ROW + 9}H23" for n in range(4)
    ]


def test_times_are_bars_as_long_as_their_share():
    graph = small()
    plain, timed = (drawn(graph.svg(p))["rect"] for p in (None, Profile((), (4e-3, 1e-3, 2e-3))))
    bars = [e for e in timed if e.attrib["fill"] != plain[1].attrib["fill"] and "stroke" not in e.attrib]
    assert [float(e.attrib["width"]) for e in bars] == [BAR, BAR / 4, BAR / 2]
    assert [int(float(e.attrib["y"])) // ROW for e in bars] == [1, 2, 4], "the view has none"
    assert [t for t in texts(graph.svg(Profile((), (4e-3, 1e-3, 2e-3)))) if t.endswith("ms")] == [
        "4.000 ms",
        "1.000 ms",
        "2.000 ms",
    ]
    with pytest.raises(ModelError, match="the profile has 2 calls of kernels, the graph 3: take model.graph"):
        graph.svg(Profile((), (1e-3, 1e-3)))


def value(name, size=16):
    return Value(name, (size,), small().inputs[0].dtype)


def test_tensors_that_are_needed_in_the_same_rows_have_lanes_of_their_own():
    a, b, c, d = map(value, "abcd")
    assert _lanes({a: (0, 1), b: (1, 2)}) == {a: 0, b: 0}, "one ends where the other begins"
    assert _lanes({a: (0, 3), b: (1, 2), c: (2, 4), d: (3, 4)}) == {a: 0, b: 1, c: 1, d: 0}
    assert _lanes({}) == {}


def test_a_plan_is_a_table_and_a_picture():
    graph = small()
    made = plan(groups(graph), graph.outputs.values())
    assert repr(made).splitlines()[1].split() == ["cumsum", "4800", "0", "1", "3", "reshape"]
    assert repr(made).endswith("workspace: 4800 bytes".replace("4800", str(made.nbytes)))
    first, second = value("first"), value("second", 48)
    found = drawn(Plan({first: 192, second: 0}, {first: (0, 1), second: (1, 3)}, {}, 256).svg())
    boxes = [[float(e.attrib[k]) for k in ("x", "y", "width", "height")] for e in found["rect"]]
    assert boxes == [[70, 8, 320, 60], [230, 68, 480, 180]]
    assert found["title"][0].text == "%first: float32[16]\nbytes 192 to 256, groups 0 to 1"
    assert "shared by reshape" in made.svg() and made._repr_html_().startswith(made.svg())
    assert drawn(Plan({}, {}, {}, 0).svg())["rect"] == []


def test_names_and_bytes_are_short():
    assert [shortened("a" * n, 5) for n in (5, 6)] == ["aaaaa", "aa…aa"]
    assert [size(n) for n in (999, 1000, 999_949, 10**6)] == ["999 B", "1.0 kB", "999.9 kB", "1.00 MB"]
