"""AutoTVM's templates: knobs, tuners, the log, and a note of 2020 with its imports changed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tir
import tir as tvm
from tir import te
from tir.tune import autotvm
from tir.tune.runner import Measurement
from tir.tune.template import Config, Reorder, Split, TemplateSource


class Computed:
    """Least, 1, where the tiles are 8 and 16."""

    def measure(self, problem, jobs, best=math.inf):
        return [Measurement(job.number, "ok", self.time(job.mod)) for job in jobs]

    def time(self, mod):
        from tir.visit import walk

        extents = [n.extent.value for n in walk(mod["main"].body) if isinstance(n, tir.For)]
        return 1.0 + (8 not in extents) + (16 not in extents)

    def close(self):
        pass


@autotvm.template("tutorial/matmul")
def matmul(N, L, M, dtype):
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    k = s[C].op.reduce_axis[0]
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, k, yi, xi)
    cfg.add_flop(2 * N * L * M)
    return s, [A, B, C]


@pytest.mark.parametrize("tuner", ["RandomTuner", "GridSearchTuner", "XGBTuner", "GATuner"])
def test_a_note_of_2020_runs_with_changed_imports(tuner, tmp_path, capsys, monkeypatch):
    from tir.tune.learner import Nearest

    monkeypatch.setattr("tir.tune.search.learner", lambda seed, count: Nearest())
    N, L, M = 32, 24, 64
    task = autotvm.task.create("tutorial/matmul", args=(N, L, M, "float32"), target="llvm")
    assert len(task.config_space) == 6 * 7 and task.flop == 2 * N * L * M
    log = tmp_path / "matmul.log"
    option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=Computed())
    one = getattr(autotvm.tuner, tuner)(task)
    callbacks = [autotvm.callback.log_to_file(str(log)), autotvm.callback.progress_bar(42)]
    one.tune(n_trial=42, measure_option=option, callbacks=callbacks)
    assert (
        one.result.best_seconds == 1.0
        and one.best_config["tile_y"].size[0] == -1
        and "GFLOPS" in capsys.readouterr().out
    )
    assert len(log.read_text().splitlines()) > 8
    with open(log, "a") as file:
        file.write('{"template": "tutorial/matm')  # cut off
    with autotvm.apply_history_best(str(log)):
        s, args = matmul(N, L, M, "float32")
        assert Computed().time(s.to_schedule(args).mod) == 1.0
        func = tvm.build(s, args)
    a, b, c = (np.ones(shape, "float32") for shape in ((N, L), (L, M), (N, M)))
    func(a, b, c)
    assert (c == L).all()
    best = tmp_path / "best.log"
    autotvm.record.pick_best(log, best)
    assert len(best.read_text().splitlines()) == 1
    s, args = matmul(N, L, M, "float32")  # outside: the first value of each knob
    assert Computed().time(s.to_schedule(args).mod) > 1.0


def test_the_grid_is_measured_in_order():
    source = TemplateSource(matmul, (4, 4, 4, "float32"), "grid")
    import random

    wanted = [source.wanted[id(sch)] for sch in source.draw(random.Random(0), 100)]
    assert wanted == [{"tile_y": a, "tile_x": b} for b in range(3) for a in range(3)]


def test_a_template_of_a_block_schedule_takes_its_configuration_first():
    from tir.library import elementwise

    @tir.tune.template
    def scale(cfg, n):
        sch = tir.Schedule(elementwise.scale_add(n))
        (loop,) = sch.get_loops(sch.get_child_blocks("root")[0])
        cfg.define_split("tile", n, policy="power2", num_outputs=3, filter=lambda one: one.size[-1] <= 8)
        cfg.define_annotate("ann", [0], policy="try_vec")
        parts = cfg["tile"].apply(sch, None, loop)
        cfg["ann"].apply(sch, None, parts[-1:])
        return sch

    task = autotvm.task.create(scale, (64,))
    assert len(task.config_space) == 2 * sum(1 for a in range(7) for b in range(4) if a + b <= 6)
    tuner = autotvm.tuner.XGBTuner(task)
    tuner.tune(6, autotvm.measure_option(runner=Computed()))
    assert tuner.result.best_seconds <= 2.0


def test_knobs_have_the_values_that_were_defined():
    cfg = Config({"order": 3, "unroll": 1})
    cfg.define_reorder("order", ["a", "b", "c"], policy="all")
    cfg.define_knob("unroll", [0, 16])
    cfg.define_split("tile", 12, policy="candidate", candidate=[[-1, 4], [-1, 6]])
    assert cfg["order"] == Reorder((1, 2, 0)) and cfg["unroll"].val == 16 and cfg["tile"] == Split((-1, 4))
    cfg.fallback_split("tile", [-1, 6])
    assert cfg["tile"] == Split((-1, 6)) and len(cfg) == 6 * 2 * 2
    with pytest.raises(KeyError, match="no knob 'x' is defined; there are order, unroll, tile"):
        cfg["x"]
    with pytest.raises(tir.TirError, match="knob none has no value"):
        cfg.define_split("none", 7, filter=lambda one: False)
    with pytest.raises(KeyError, match="no template"):
        autotvm.task.create("no/such", ())
