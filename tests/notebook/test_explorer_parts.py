"""The parts of the explorer one by one: lines of loops, messages of any form, rates, the server's answers, completion."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

import tir
from tir.notebook import completion, runs, server, stages, widget
from tir.notebook.explorer import Explorer, value_of
from tir.notebook.offered import shown_value
from tir.notebook.stages import loop_lines
from tir.script import tir as T
from tir.target import KINDS


@T.prim_func
def scale(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def settled(explorer: Explorer) -> dict:
    """The view when nothing is pending."""
    while explorer.view()["pending"]:
        explorer.handle({"do": "more"})
    return explorer.view()


# ---------------------------------------------------------------- code

ROTATED = [
    "f: # @f",
    "# %bb.0: # %entry",
    ".LBB0_3: # %end.j  ",
    "  # in Loop: Header=BB0_1 Depth=1",
    ".LBB0_2: # %for.j.4.i",
    "  # Parent Loop BB0_1 Depth=1",
    "  # =>  This Inner Loop Header: Depth=2",
    "  jne .LBB0_2",
    ".LBB0_1: # %for.i.3.i",
    "  # =>This Loop Header: Depth=1",
    ".LBB0_4: # %end",
    "  ret",
    ".Lfunc_end0:",
]


@pytest.mark.parametrize(
    ("lines", "name", "found"),
    [
        (["for i in range(4):", "    x", "", "    y", "z"], "i", [(0, 3)]),
        (["for i in range(4):", "x"], "i", [(0, 0)]),
        (["for i in range(4):"], "i", [(0, 0)]),
        (["    for a, i, b in T.grid(1, 2, 3):", "        x", "    y"], "i", [(0, 1)]),
        (["for (int i = 0; i < 4; ++i) {", "  x;", "}", "}"], "i", [(0, 2)]),
        (["for (int i = 0; i < 4; ++i) {", "  x;", "y;"], "i", [(0, 1)]),
        (["for (long ij = 0;;) {", "  x;", "}"], "i", []),
        (["for.i.3:", "  add", "  br i1 %c, label %for.i.3, label %e", "e:", "  br label %for.i.31"], "i", [(0, 2)]),
        (["for.i.3.i:", "  br label %for.i.3.i", "for.i.4:", "  ret"], "i", [(0, 1), (2, 2)]),
        (
            [".LBB0_1: # %for.i.3", " # =>This Inner Loop Header: Depth=1", "\tadd", ".LBB0_2: # %end", "\tret"],
            "i",
            [(0, 2)],
        ),
        ([".LBB0_1: # %for.i.3 more", " # =>This Inner Loop Header: Depth=1"], "i", []),
        (ROTATED, "i", [(2, 9)]),
        (ROTATED, "j", [(4, 7)]),
        (["for.i.1:", "  br label %for.i.1", "}", "for.i.1:", "  br label %for.i.1", "}"], "i", [(0, 1), (3, 4)]),
        (["  const int i = threadIdx.x;", "  B[i] = 0;", "}"], "i", [(0, 1)]),
        (["  const long long i = blockIdx.x;", "  if (x) {", "    y;", "  }", "}"], "i", [(0, 3)]),
        (['    i = T.launch_thread("threadIdx.x", 8)', "    x", "    y", "", "def f"], "i", [(0, 3)]),
        (["for (unsigned long i = 0;;) {", "  x;", "}"], "i", [(0, 2)]),
        ([], "i", []),
    ],
)
def test_the_lines_of_a_loop_in_generated_code(lines, name, found):
    assert loop_lines("\n".join(lines)).get(name, []) == found


def test_the_stages_of_a_target():
    cpu, gpu = stages.stages(None), stages.stages(tir.Target("cuda"))
    assert cpu[-4:] == ["lowered", "llvm", "llvm-opt", "asm"] and gpu[-3:] == ["lowered", "cuda", "ptx"]
    assert stages.stages(tir.Target("llvm")) == cpu and cpu[0].startswith("after ") and len({*gpu}) == len(gpu)
    assert "after swizzle_storage" in gpu and "after swizzle_storage" not in cpu
    mod = tir.IRModule.of(scale)
    for stage in (cpu[0], "lowered"):
        code = stages.source(mod, None, stage)
        assert code.language == "python" and "def " in code.text
    assert stages.source(mod, None, "after lower_init_block").text != stages.source(mod, None, "lowered").text
    assert stages.source(mod, None, "llvm").text.count("define") >= 1
    assert stages.source(mod, None, "asm").language != "python"


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (None, "`do` of a message is a value of type str, not None"),
        ({}, "`do` of a message is a value of type str, not None"),
        ({"do": True}, "`do` of a message is a value of type str, not True"),
        ({"do": "no"}, "the explorer knows no message 'no'"),
        ({"do": "show", "step": True}, "`step` of a message is a value of type int, not True"),
        ({"do": "show", "step": 1}, "there are steps 0 to 0, not 1"),
        ({"do": "show", "step": -1}, "there are steps 0 to 0, not -1"),
        ({"do": "select", "place": 3}, "`place` of a message is a value of type str, not 3"),
        ({"do": "apply", "name": "no"}, "there is no primitive 'no'"),
        ({"do": "apply", "name": "unroll", "given": 3}, "`given` of a message is a value of type dict, not 3"),
        ({"do": "undo", "steps": "1"}, "`steps` of a message is a value of type int, not '1'"),
    ],
)
def test_messages_that_are_none(message, said):
    made = Explorer(tir.Schedule(scale))
    made.handle(message)
    assert made.error == said
    made.handle({"do": "show", "step": 0})
    assert (made.error, made.shown) == ("", None)


def test_parts_of_the_view():
    made = Explorer(tir.Schedule(scale))
    view = settled(made)
    assert (view["title"], view["at"], view["last"], view["redo"], view["diff"]) == ("scale, 0 steps", 0, 0, 0, [])
    assert (
        view["panes"] == [*stages.stages(None), "accesses", "footprint"]
        and view["runs"] == [None]
        and view["selected"] == ""
    )
    made.handle({"do": "select", "place": "j"})
    assert (settled(made)["selected"], made.selected) == ("j", "j")
    given = {"loop": "j", "factors": "[None, 4]", "tail": "", "names": None}
    made.handle({"do": "apply", "name": "split", "given": given})
    view = settled(made)
    assert made.error == "" and view["title"] == "scale, 1 step" and view["selected"] == "j_1"
    assert view["diff"] != [] and len(view["steps"]) == 2 and "split" in view["python"]
    made.handle({"do": "show", "step": 0})
    assert made.shown == 0 and settled(made)["at"] == 0 and settled(made)["diff"] == []
    made.handle({"do": "show", "step": 1})
    assert made.shown is None
    made.handle({"do": "show", "step": 0})
    made.schedule.undo()
    assert settled(made)["at"] == 0 and made.shown is None
    made.handle({"do": "redo"})
    assert settled(made)["last"] == 1 and settled(made)["redo"] == 0
    made.handle({"do": "undo"})
    assert (settled(made)["last"], settled(made)["redo"]) == (0, 1)


def test_the_pane_beside_the_program():
    made = Explorer(tir.Schedule(scale))
    made.handle({"do": "open", "pane": "lowered"})
    made.handle({"do": "select", "place": "i"})
    assert made.view()["pane"]["lines"] is None
    pane = settled(made)["pane"]
    assert (pane["name"], pane["failed"], len(pane["places"]["i"])) == ("lowered", False, 1)
    assert made.view()["pane"] is pane
    made.handle({"do": "open", "pane": "llvm"})
    assert settled(made)["pane"]["name"] == "llvm" and "i" in settled(made)["pane"]["places"]
    made.handle({"do": "open", "pane": "no"})
    assert settled(made)["pane"]["failed"] is True and settled(made)["pane"]["places"] == {}
    made.handle({"do": "open", "pane": "lowered"})
    before = settled(made)["pane"]["lines"]
    made.schedule.unroll("j")
    assert settled(made)["pane"]["lines"] != before


def test_fields_of_an_offer():
    made = Explorer(tir.Schedule(scale))
    made.handle({"do": "select", "place": "B"})
    offers = {offer["name"]: offer for offer in settled(made)["offers"]}
    read = offers["cache_read"]
    assert read["given"] == {"block": "B"} and {f["name"] for f in read["fields"]} >= {"storage_scope"}
    fields = {f["name"]: f for f in read["fields"]}
    assert len(fields["storage_scope"]["choices"]) > 1
    assert all(len(f["choices"]) != 1 and len(f["choices"]) <= 64 for o in offers.values() for f in o["fields"])
    assert shown_value("x") == "x" and shown_value([None, 4]) == "[None, 4]" and shown_value(3) == "3"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("[1, None]", [1, None]),
        ("'x'", "x"),
        ("x y", "x y"),
        (4, 4),
        ("(" * 5000, "(" * 5000),
        ("True", True),
    ],
)
def test_values_typed_into_a_form(text, value):
    assert value_of("any", text) == value


def test_a_lambda_in_a_form_is_an_index_map():
    for text in ("lambda i: i + 1", " lambda i: i + 1 "):
        assert "final_indices=[i + 1]" in str(value_of("index_map", text))


# ---------------------------------------------------------------- runs


def test_a_rate_is_a_share_of_the_bound(monkeypatch):
    found = SimpleNamespace(flops=2e9, bound=4e9, bottleneck="L2")
    monkeypatch.setattr(runs, "footprint", lambda function: found)
    assert runs._rate(scale, 1.0) == ", 2 GFLOP/s (50 % of the bound by L2 of one core)"
    for name in ("flops", "bound"):
        monkeypatch.setattr(runs, "footprint", lambda function, name=name: SimpleNamespace(**{**vars(found), name: 0}))
        assert runs._rate(scale, 1.0) == ""

    def unknown(function):
        raise tir.ScheduleError("no")

    monkeypatch.setattr(runs, "footprint", unknown)
    assert runs._rate(scale, 1.0) == ""
    with pytest.raises(tir.RunError, match="^the explorer times programs for llvm; this schedule is for cuda: Check"):
        runs.timed(tir.IRModule.of(scale), tir.IRModule.of(scale), tir.Target("cuda"), "main")


# ---------------------------------------------------------------- the server


def test_the_headers_of_an_answer_and_the_end_of_the_server():
    with server.Server(tir.Schedule(scale)) as made:
        assert (
            made.url == f"http://127.0.0.1:{made._http.server_address[1]}/?token={made.token}" and len(made.token) == 32
        )
        assert made._thread.daemon and made._http.daemon_threads
        place = urlsplit(made.url).netloc

        def asked(method: str, path: str, body: bytes = b"", **headers: str):
            connection = HTTPConnection(place, timeout=20)
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            return answer, text.decode()

        page, text = asked("GET", f"/?token={made.token}")
        assert page.getheader("Content-Type") == "text/html; charset=utf-8" and "<!doctype html>" in text
        assert int(page.getheader("Content-Length")) == len(text.encode())
        assert page.getheader("Cache-Control") == "no-store" and page.getheader("Referrer-Policy") == "no-referrer"
        assert page.getheader("X-Content-Type-Options") == "nosniff" and "'self'" in page.getheader(
            "Content-Security-Policy"
        )
        for name, kind in (("explorer.js", "javascript"), ("explorer.css", "css"), ("page.js", "javascript")):
            answer, text = asked("GET", f"/{name}?token={made.token}")
            assert answer.getheader("Content-Type") == f"text/{kind}; charset=utf-8" and len(text) > 100
        for method, path, body, headers, status, said in (
            ("GET", f"/no?token={made.token}", b"", {}, 404, "there is no such page"),
            ("GET", "/", b"", {}, 403, "open the whole address that was printed: it ends in a token"),
            (
                "POST",
                "/",
                b"{}",
                {"X_Tir_Token": "x"},
                403,
                "open the whole address that was printed: it ends in a token",
            ),
            ("POST", "/", b"{", {"X_Tir_Token": made.token}, 400, "a message is JSON"),
            ("POST", "/", b"", {"Content_Length": "1048577"}, 413, "a message has at most 1048576 bytes"),
        ):
            answer, text = asked(method, path, body, **headers)
            assert (answer.status, text) == (status, said)
        message = json.dumps({"do": "refresh", "pad": ""}).encode()
        message = message.replace(b'""', b'"' + b" " * ((1 << 20) - len(message)) + b'"')
        assert len(message) == 1 << 20
        answer, text = asked("POST", "/", message, X_Tir_Token=made.token)
        assert answer.status == 200 and answer.getheader("Content-Type") == "application/json; charset=utf-8"
        assert json.loads(text)["title"] == "scale, 0 steps"
        made.wait(0.001)
        assert made._thread.is_alive()
    assert not made._thread.is_alive()
    with pytest.raises(OSError):
        asked("GET", "/")


def test_waiting_ends_with_the_server_or_when_interrupted(monkeypatch):
    with server.Server(tir.Schedule(scale)) as made:
        waited = []
        monkeypatch.setattr(threading.Thread, "join", lambda self, timeout=None: waited.append(timeout))
        made.wait(1.5)
        made.wait()
        assert waited == [1.5, None]

        def interrupted(self, timeout=None):
            raise KeyboardInterrupt

        monkeypatch.setattr(threading.Thread, "join", interrupted)
        made.wait()
        monkeypatch.undo()


# ---------------------------------------------------------------- notebooks


def test_a_widget_follows_its_schedule_after_each_cell(monkeypatch):
    events, alive = [], SimpleNamespace(comm=1, follow=lambda: events.append("follow"))

    class Held:
        comm = 1

        def follow(self):
            events.append("follow")

    registered = {}
    shell = SimpleNamespace(
        events=SimpleNamespace(
            register=lambda name, call: registered.setdefault(name, call),
            unregister=lambda name, call: events.append((name, registered[name] is call)),
        )
    )
    import sys

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    widget._after_each_cell(alive)
    assert registered == {}
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    held = Held()
    widget._after_each_cell(held)
    follow = registered["post_run_cell"]
    follow()
    assert events == ["follow"]
    held.comm = None
    follow("result")
    assert events[1:] == [("post_run_cell", True)]
    held.comm = 1
    del held
    follow()
    assert events[2:] == [("post_run_cell", True)]
    monkeypatch.delitem(sys.modules, "IPython")
    registered.clear()
    widget._after_each_cell(Held())
    assert registered == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('f("', ("f", (), "", "")),
        ('a.b.f("x', ("a.b.f", (), "", "x")),
        ("f('x", ("f", (), "", "x")),
        ('f(1, g(2, "a,b"), [3, 4], "x', ("f", ("1", 'g(2, "a,b")', "[3, 4]"), "", "x")),
        ('f(1, key="x', ("f", ("1",), "key", "x")),
        ('f(1, key=["x', ("f", (), "key", "x")),
        ('f(1, ["a", "x', ("f", ("1",), "", "x")),
        ('f("a\\"b', ("f", (), "", 'a\\"b')),
        ('f("a") + g("b", "x', ("g", ('"b"',), "", "x")),
        ('f({"a": 1}, "x', ("f", ('{"a": 1}',), "", "x")),
        ('f("a", x', None),
        ('"x', None),
        ('("x', None),
        ("x", None),
        ("", None),
    ],
)
def test_the_call_that_is_being_typed(line, found):
    got = completion.cursor(line)
    if found is not None and 'key=["x' not in line and '["a", "x' not in line:
        assert got == completion.Cursor(*found)
    elif found is None:
        assert got is None
    else:  # inside of a list each name is completed
        assert (got.callee, got.part) == (found[0], found[3])


def test_what_a_string_may_become():
    sch = tir.Schedule(scale)
    names = {"sch": sch, "can": sch.can, "holder": SimpleNamespace(sch=sch), "i": sch.get_loops("B")[0], "n": 3}
    for line, found in (
        ('tir.build(f, "', list(KINDS)),
        ('tir.build(f, target="cu', [kind for kind in KINDS if kind.startswith("cu")]),
        ('tir.build("', []),
        ('tir.build(f, g, "', []),
        ('Schedule(f, target="l', ["llvm"]),
        ('sch.split("', ["i", "j"]),
        ('sch.split(loop="j', ["j"]),
        ('sch.reorder("i", "', ["i", "j"]),
        ('holder.sch.unroll("', ["i", "j"]),
        ('can.unroll("', ["i", "j"]),
        ('nobody.unroll("', []),
        ('n.unroll("', []),
        ('sch.no_such("', []),
        ('sch.split(no="', []),
        ('sch.split("i", [2, 4], "', []),
        ("sch.can.unro", ["unroll"]),
        ("holder.sch.can.unro", ["unroll"]),
        ("nobody.can.un", []),
        ("sch.can", []),
    ):
        got = completion.completions(line, names)
        assert [g for g in got if g in found] == got and sorted(got) == sorted(found), line
    for before in ('"B", 0, ', '"B", storage_scope='):
        assert completion.completions(f'sch.cache_read({before}"shared', names) == ["shared", "shared.dyn"]
    assert completion.completions('sch.bind(i, "threadIdx.', names) == [f"threadIdx.{axis}" for axis in "xyz"]
