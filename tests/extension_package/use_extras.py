"""What the test runs where the package is installed: every entry point is found by name, none is imported here."""

import sys

import numpy as np

import tir
from tir.script import parse

KERNEL = """
@T.prim_func
def main(X: T.Buffer((4, 4), "float32"), a: T.Buffer((1,), "float32"), Y: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = Y[vi, vj] + a[0] * X[vi, vj]
"""
DOUBLE = """
@T.prim_func
def main(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[vi] * 2.0
"""
CHAIN = """
@T.prim_func
def main(B: T.Buffer((6,), "float32")):
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi + 1] = B[vi] * 2.0
"""

# the primitive: in the trace, undone, asked about, refused
sch = tir.Schedule(parse(DOUBLE))
sch.reverse("i")
assert "4 - i" in sch.script()
assert tir.structural_equal(sch.trace.replay(parse(DOUBLE)).mod, sch.mod)
sch.undo()
assert sch.can.reverse("i")
answer = tir.Schedule(parse(CHAIN)).can.reverse("i")
assert not answer and "not yet written" in answer.reason, answer.reason

# the pass, by name
assert "A[vi] + A[vi]" in tir.transform.find("doubling")(sch.mod["main"]).script()
assert "A[vi] + A[vi]" in tir.transform.Doubling()(sch.mod["main"]).script()

# the intrinsic, by name
sch = tir.Schedule(parse(KERNEL))
sch.tensorize("j", "extras.axpy_4")
assert "T.Ramp" in sch.script() or "T.ramp" in sch.script() or "0:4" in sch.script()
x, a, y = np.arange(16, dtype="float32").reshape(4, 4), np.array([3], "float32"), np.ones((4, 4), "float32")
tir.build(sch.mod)["main"](x, a, y)
np.testing.assert_allclose(y, 1 + 3 * x)

# the operator, in a namespace of its own
assert "extras.cube" in tir.ops.operators()
assert tir.ops.extras.cube(tir.te.placeholder((4,))).shape[0] == 4
tir.ops.check("extras.cube")

# the target
module = tir.build(parse(DOUBLE), "counting")
out = np.zeros(5, "float32")
module["main"](np.arange(5, dtype="float32"), out)
assert out.tolist() == [0, 2, 4, 6, 8] and module.calls == 1
assert "* 2.0" not in module.lowered.script()
assert tir.Target("counting").attrs == {"num_cores": 1}

# the rule of the tuner
sch = tir.tune.space.space_of("llvm").first(tir.Schedule(parse(KERNEL)))
assert [int(sch.get(loop).extent) for loop in sch.get_loops("Y")] == [2, 2, 4]

assert [m for m in sys.modules if m.startswith("tir_extras.")], "found by entry points"
# the invariant: after every step that may break it, and no step is refused for what was so before
deep = tir.Schedule(parse(DOUBLE.replace("range(5)", "range(64)").replace("(5,", "(64,").replace("(5, i)", "(64, i)")))
deep.split("i", [2, 2, 2, 2, 2, 2])
reason = deep.can.split("i_0", [1, 2]).reason
assert "block `B` would be in 7 loops" in reason, reason
assert deep.can.annotate("B", "note", 1)

print("all seven")
