"""Times a library on one piece of work at a time, in its own process: ``python peer_worker.py LIBRARY CLOCK THREADS``.

Reads lines of JSON [kind, sizes, number]; answers each with the seconds of one call, or null if the library has no such
operation. Outputs are preallocated if the library can write into them.
"""

import importlib.util
import json
import math
import pathlib
import sys
import time

import numpy as np

path = pathlib.Path(__file__).with_name("arrays.py")
spec = importlib.util.spec_from_file_location("arrays", path)
arrays = importlib.util.module_from_spec(spec)
spec.loader.exec_module(arrays)


def numpy_calls(threads):
    def softmax(a, out):
        np.subtract(a, a.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(1, keepdims=True), out=out)

    def layer_norm(a, g, h, out):
        np.subtract(a, a.mean(1, keepdims=True), out=out)
        scale = 1 / np.sqrt(np.einsum("ij,ij->i", out, out) / a.shape[1] + 1e-5)
        np.multiply(out, scale[:, None], out=out)
        np.multiply(out, g, out=out)
        np.add(out, h, out=out)

    def scale_add(a, out):
        np.multiply(a, np.float32(3), out=out)
        np.add(out, np.float32(1), out=out)

    def blur(a, out):
        along = a[:, :-2] + a[:, 1:-1]
        along += a[:, 2:]
        np.add(along[:-2], along[1:-1], out=out)
        out += along[2:]
        out *= np.float32(1 / 9)

    def attention(q, k, v, out):
        power = q @ k.T
        power *= np.float32(1 / math.sqrt(q.shape[1]))
        power -= power.max(1, keepdims=True)
        np.exp(power, out=power)
        np.matmul(power, v, out=out)
        out /= power.sum(1, keepdims=True)

    def product(a, b, out):
        np.matmul(a, b, out=out)

    return {
        "gemm": product,
        "batched_gemm": product,
        "gemv": product,
        "softmax": softmax,
        "layer_norm": layer_norm,
        "row_sum": lambda a, out: np.sum(a, 1, out=out),
        "column_sum": lambda a, out: np.sum(a, 0, out=out),
        "transpose": lambda a, out: np.copyto(out, a.T),
        "scale_add": scale_add,
        "blur": blur,
        "attention": attention,
    }


def torch_calls(threads):
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    views = {}

    def view(array, make=lambda t: t):
        """The array as a tensor over the same memory, made once."""
        key = array.ctypes.data, array.shape
        if key not in views:
            views[key] = array, make(torch.from_numpy(array))  # keep the array: the key is its address
        return views[key][1]

    def half(array):
        return view(array.view(np.int16), lambda t: t.view(torch.bfloat16))

    def last(array):
        return view(array, lambda t: t.permute(0, 3, 1, 2))

    def conv(stride, groups=1):
        def nhwc(a, w, out):
            make = (lambda t: t.permute(3, 2, 0, 1)) if w.ndim == 4 else (lambda t: t.permute(2, 0, 1)[:, None])
            x = last(a)
            weights = view(w, lambda t: make(t).contiguous(memory_format=torch.channels_last))
            F.conv2d(x, weights, None, stride, w.shape[0] // 2, 1, x.shape[1] if groups == 0 else 1)

        return nhwc

    def elementwise(a, out):
        torch.mul(view(a), 3, out=view(out))
        view(out).add_(1)

    def gelu(a, s, h, out):
        x = torch.mul(view(a), view(s), out=view(out))
        F.gelu(x.add_(view(h)))

    def one(t):
        return t[None, None]

    calls = {
        "gemm": lambda a, b, out: torch.mm(view(a), view(b), out=view(out)),
        "bf16_gemm": lambda a, b, out: torch.mm(half(a), half(b)),
        "batched_gemm": lambda a, b, out: torch.bmm(view(a), view(b), out=view(out)),
        "gemv": lambda a, b, out: torch.mv(view(a), view(b), out=view(out)),
        "softmax": lambda a, out: torch.softmax(view(a), 1, out=view(out)),
        "layer_norm": lambda a, g, h, out: F.layer_norm(view(a), g.shape, view(g), view(h)),
        "row_sum": lambda a, out: torch.sum(view(a), 1, out=view(out)),
        "column_sum": lambda a, out: torch.sum(view(a), 0, out=view(out)),
        "transpose": lambda a, out: view(out).copy_(view(a).t()),
        "scale_add": elementwise,
        "gelu_chain": gelu,
        "attention": lambda q, k, v, out: F.scaled_dot_product_attention(view(q, one), view(k, one), view(v, one)),
    }

    def find(kind, sizes):
        views.clear()
        if kind in ("conv2d_nhwc", "depthwise_nhwc"):
            return conv(sizes[5], 0 if kind == "depthwise_nhwc" else 1)
        if kind == "conv2d_nchw":
            return lambda a, w, out: F.conv2d(view(a), view(w), None, sizes[5], w.shape[2] // 2)
        return calls.get(kind.removesuffix("_dot"))

    return find


def numba_calls(threads):
    import numba

    numba.set_num_threads(threads)
    jit = numba.njit(fastmath=True, parallel=threads > 1)

    @jit
    def scale_add(a, out):
        for i in numba.prange(a.size):
            out[i] = a[i] * np.float32(3) + np.float32(1)

    @jit
    def gelu_chain(a, s, h, out):
        for i in numba.prange(a.size):
            x = a[i] * s[i] + h[i]
            out[i] = x * np.float32(0.5) * (np.float32(1) + np.float32(math.erf(x * np.float32(0.70710678))))

    @jit
    def row_sum(a, out):
        for i in numba.prange(a.shape[0]):
            total = np.float32(0)
            for j in range(a.shape[1]):
                total += a[i, j]
            out[i] = total

    @jit
    def blur(a, out):
        for y in numba.prange(out.shape[0]):
            for x in range(out.shape[1]):
                total = np.float32(0)
                for p in range(3):
                    total += a[y + p, x] + a[y + p, x + 1] + a[y + p, x + 2]
                out[y, x] = total * np.float32(1 / 9)

    return {"scale_add": scale_add, "gelu_chain": gelu_chain, "row_sum": row_sum, "blur": blur}


def halide_calls(threads):
    import os

    import halide as hl

    os.environ["HL_NUM_THREADS"] = str(threads)
    x, y, yi = hl.Var("x"), hl.Var("y"), hl.Var("yi")
    made = {}

    def blur(a, out):
        key = a.ctypes.data
        if key not in made:
            source, target = hl.Buffer(a), hl.Buffer(out)
            along, result = hl.Func("along"), hl.Func("result")
            along[x, y] = (source[x, y] + source[x + 1, y] + source[x + 2, y]) * hl.f32(1 / 3)
            result[x, y] = (along[x, y] + along[x, y + 1] + along[x, y + 2]) * hl.f32(1 / 3)
            result.split(y, y, yi, 32, hl.TailStrategy.GuardWithIf).vectorize(x, 16, hl.TailStrategy.GuardWithIf)
            if threads > 1:
                result.parallel(y)
            along.store_at(result, y).compute_at(result, yi).vectorize(x, 16, hl.TailStrategy.GuardWithIf)
            result.compile_jit()
            made[key] = result, target, a
        made[key][0].realize(made[key][1])

    return {"blur": blur}


def main():
    library, clock, threads = sys.argv[1], getattr(time, sys.argv[2]), int(sys.argv[3])
    calls = {"numpy": numpy_calls, "torch": torch_calls, "numba": numba_calls, "halide": halide_calls}[library](threads)
    find = calls if callable(calls) else lambda kind, sizes: calls.get(kind)
    print("ready", flush=True)
    known = {}
    for line in sys.stdin:
        kind, sizes, number = json.loads(line)
        key = kind, tuple(sizes)
        if key not in known:
            known.clear()  # frees the memory of the previous work
            call = find(kind, sizes)
            known[key] = call, arrays.inputs(kind, sizes) if call else []
            if call:
                call(*known[key][1])
        call, given = known[key]
        seconds = None
        if call:
            if number > 1:
                call(*given)
            start = clock()
            for _ in range(number):
                call(*given)
            seconds = (clock() - start) / number
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main()
