"""AutoTVM's tutorials of v0.6 to v0.8 in their own spelling, with their imports changed (and sizes, and what measures)."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest

import tir as tvm
from tir import autotvm, te, topi
from tir.target import Target
from tir.topi.testing import conv2d_nchw_python
from tir.tune.runner import Measurement


@autotvm.template
def matmul_v1(N, L, M, dtype):
    """The template of v0.6: names of ``tvm`` itself, knobs of candidates."""
    A = tvm.placeholder((N, L), name="A", dtype=dtype)
    B = tvm.placeholder((L, M), name="B", dtype=dtype)
    k = tvm.reduce_axis((0, L), name="k")
    C = tvm.compute((N, M), lambda i, j: tvm.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = tvm.create_schedule(C.op)
    y, x = s[C].op.axis
    k = s[C].op.reduce_axis[0]
    cfg = autotvm.get_config()
    cfg.define_knob("tile_y", [1, 2, 4, 8, 16])
    cfg.define_knob("tile_x", [1, 2, 4, 8, 16])
    yo, yi = s[C].split(y, cfg["tile_y"].val)
    xo, xi = s[C].split(x, cfg["tile_x"].val)
    s[C].reorder(yo, xo, k, yi, xi)
    return s, [A, B, C]


@autotvm.template("tutorial/matmul_of_splits")
def matmul(N, L, M, dtype):
    """The template of v0.7 and v0.8."""
    A = te.placeholder((N, L), name="A", dtype=dtype)
    B = te.placeholder((L, M), name="B", dtype=dtype)
    k = te.reduce_axis((0, L), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    k = s[C].op.reduce_axis[0]
    ##### define space begin #####
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    ##### define space end #####
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    s[C].reorder(yo, xo, k, yi, xi)
    return s, [A, B, C]


@pytest.mark.parametrize(
    ("template", "create", "target", "values"),
    [(matmul_v1, matmul_v1, tvm.target.create, 25), (matmul, "tutorial/matmul_of_splits", tvm.target.Target, 36)],
    ids=["v0.6", "v0.8"],
)
def test_a_product_of_matrices(template, create, target, values, tmp_path, capsys):
    N, L, M = 32, 32, 32
    task = autotvm.task.create(create, args=(N, L, M, "float32"), target="llvm")
    print(task.config_space)
    shown = capsys.readouterr().out
    assert f"{values} configurations of" in shown and "tile_y: " in shown and "tile_x: " in shown

    logging.getLogger("autotvm").setLevel(logging.DEBUG)
    logging.getLogger("autotvm").addHandler(logging.StreamHandler(sys.stdout))
    measure_option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=5))
    tuner = autotvm.tuner.RandomTuner(task)
    log = str(tmp_path / "matmul.log")
    tuner.tune(n_trial=2, measure_option=measure_option, callbacks=[autotvm.callback.log_to_file(log)])

    with autotvm.apply_history_best(log):  # noqa: SIM117
        with target("llvm"):
            s, arg_bufs = template(N, L, M, "float32")
            func = tvm.build(s, arg_bufs)
    a_np = np.random.uniform(size=(N, L)).astype(np.float32)
    b_np = np.random.uniform(size=(L, M)).astype(np.float32)
    c_np = a_np.dot(b_np)
    c_tvm = tvm.nd.empty(c_np.shape)
    func(tvm.nd.array(a_np), tvm.nd.array(b_np), c_tvm)
    np.testing.assert_allclose(c_np, c_tvm.asnumpy(), rtol=1e-2)


@autotvm.template("tutorial/conv2d_no_batching")
def conv2d_no_batching(N, H, W, CO, CI, KH, KW, stride, padding):
    assert N == 1, "Only consider batch_size = 1 in this template"
    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    s = te.create_schedule([conv.op])
    ##### space definition begin #####
    n, f, y, x = s[conv].op.axis
    rc, ry, rx = s[conv].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_split("tile_ry", ry, num_outputs=3)
    cfg.define_split("tile_rx", rx, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])
    ##### space definition end #####

    # inline padding
    pad_data = s[conv].op.input_tensors[0]
    s[pad_data].compute_inline()
    data, raw_data = pad_data, data
    output = conv
    OL = s.cache_write(conv, "local")
    # create cache stage
    AA = s.cache_read(data, "shared", [OL])
    WW = s.cache_read(kernel, "shared", [OL])
    AL = s.cache_read(AA, "local", [OL])
    WL = s.cache_read(WW, "local", [OL])
    # tile and bind spatial axes
    n, f, y, x = s[output].op.axis
    bf, vf, tf, fi = cfg["tile_f"].apply(s, output, f)
    by, vy, ty, yi = cfg["tile_y"].apply(s, output, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, output, x)
    kernel_scope = n  # this is the scope to attach global config inside this kernel
    s[output].bind(bf, te.thread_axis("blockIdx.z"))
    s[output].bind(by, te.thread_axis("blockIdx.y"))
    s[output].bind(bx, te.thread_axis("blockIdx.x"))
    s[output].bind(vf, te.thread_axis("vthread"))
    s[output].bind(vy, te.thread_axis("vthread"))
    s[output].bind(vx, te.thread_axis("vthread"))
    s[output].bind(tf, te.thread_axis("threadIdx.z"))
    s[output].bind(ty, te.thread_axis("threadIdx.y"))
    s[output].bind(tx, te.thread_axis("threadIdx.x"))
    s[output].reorder(n, bf, by, bx, vf, vy, vx, tf, ty, tx, fi, yi, xi)
    s[OL].compute_at(s[output], tx)
    # tile reduction axes
    n, f, y, x = s[OL].op.axis
    rc, ry, rx = s[OL].op.reduce_axis
    rco, rcm, rci = cfg["tile_rc"].apply(s, OL, rc)
    ryo, rym, ryi = cfg["tile_rx"].apply(s, OL, ry)
    rxo, rxm, rxi = cfg["tile_ry"].apply(s, OL, rx)
    s[OL].reorder(rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi, n, f, y, x)
    s[AA].compute_at(s[OL], rxo)
    s[WW].compute_at(s[OL], rxo)
    s[AL].compute_at(s[OL], rxm)
    s[WL].compute_at(s[OL], rxm)
    # cooperative fetching
    for load in [AA, WW]:
        n, f, y, x = s[load].op.axis
        fused = s[load].fuse(n, f, y, x)
        tz, fused = s[load].split(fused, nparts=cfg["tile_f"].size[2])
        ty, fused = s[load].split(fused, nparts=cfg["tile_y"].size[2])
        tx, fused = s[load].split(fused, nparts=cfg["tile_x"].size[2])
        s[load].bind(tz, te.thread_axis("threadIdx.z"))
        s[load].bind(ty, te.thread_axis("threadIdx.y"))
        s[load].bind(tx, te.thread_axis("threadIdx.x"))
    # tune unroll
    s[output].pragma(kernel_scope, "auto_unroll_max_step", cfg["auto_unroll_max_step"].val)
    s[output].pragma(kernel_scope, "unroll_explicit", cfg["unroll_explicit"].val)
    return s, [raw_data, kernel, conv]


class Board:
    """In place of a GPU: the more blocks, the slower."""

    def measure(self, problem, jobs, best):
        times = [1.0 + str(job.mod.script()).count("T.block(") + 0.01 * job.number for job in jobs]
        return [Measurement(job.number, "ok", t, (t,)) for job, t in zip(jobs, times)]

    def close(self):
        pass


def test_a_convolution_on_a_gpu(tmp_path, capsys):
    N, H, W, CO, CI, KH, KW, strides, padding = 1, 4, 4, 8, 4, 3, 3, (1, 1), (1, 1)
    args = (N, H, W, CO, CI, KH, KW, strides, padding)
    task = autotvm.task.create("tutorial/conv2d_no_batching", args=args, target="cuda-sim")
    print(task.config_space)
    measure_option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=Board())
    tuner = autotvm.tuner.XGBTuner(task)
    log = str(tmp_path / "conv2d.log")
    tuner.tune(n_trial=3, measure_option=measure_option, callbacks=[autotvm.callback.log_to_file(log)])

    # inspect the best config
    dispatch_context = autotvm.apply_history_best(log)
    best_config = dispatch_context.query(task.target, task.workload)
    print("\nBest config:")
    print(best_config)
    assert "tile_f=" in capsys.readouterr().out.rpartition("Best config:")[2]
    assert best_config.wanted == tuner.best_config.wanted
    assert dispatch_context.query(task.target, ("tutorial/conv2d_no_batching", 1, 8)) is None

    # apply history best from log file
    with autotvm.apply_history_best(log):  # noqa: SIM117
        with tvm.target.Target("cuda-sim"):
            s, arg_bufs = conv2d_no_batching(*args)
            func = tvm.build(s, arg_bufs)
    a_np = np.random.uniform(size=(N, CI, H, W)).astype(np.float32)
    w_np = np.random.uniform(size=(CO, CI, KH, KW)).astype(np.float32)
    c_np = conv2d_nchw_python(a_np, w_np, strides, padding)
    c_tvm = tvm.nd.empty((N, CO, H, W))
    func(tvm.nd.array(a_np), tvm.nd.array(w_np), c_tvm)
    np.testing.assert_allclose(c_np, c_tvm.numpy(), rtol=1e-2)


def test_the_current_target_is_the_innermost_one():
    func = tvm.library.elementwise.scale_add(8)
    with Target("interpreter") as outer:
        with Target("llvm -mcpu=haswell") as inner:
            assert Target.current() is inner and tvm.build(func).target is inner
            assert tvm.build(func, "interpreter").target.kind == "interpreter", "what a call names"
        assert Target.current(allow_none=False) is outer and tvm.build(func).target is outer
        assert autotvm.task.create(matmul_v1, (4, 4, 4, "float32")).target is outer
    assert Target.current() is None and tvm.build(func).target.kind == "llvm"
    with pytest.raises(ValueError, match="no current target"):
        Target.current(allow_none=False)


def test_a_reference_that_there_is_none_of():
    with pytest.raises(AttributeError, match="conv2d_nchw_python"):
        tvm.topi.testing.conv2d_nchw  # noqa: B018
    with pytest.raises(AttributeError, match="no_such_python"):
        tvm.topi.testing.no_such_python  # noqa: B018
