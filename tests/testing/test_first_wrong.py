"""Which stage changed a result is named."""

from __future__ import annotations

import contextlib

import pytest

import tir
from tir import testing
from tir.expr import Add, Sub
from tir.schedule.primitive import PRIMITIVES, primitive
from tir.schedule.state import BlockRef, LoopRef, State
from tir.transform import func_pass
from tir.transform.pipeline import cpu_pipeline, inserted
from tir.visit import rewrite, substitute

ROWS = tir.script.parse("""
@T.prim_func
def rows(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 32):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] += A[vi, vk]
""")


def wrong_sums(func: tir.PrimFunc) -> tir.PrimFunc:
    """A fault: float sums are differences."""
    body = rewrite(func.body, lambda n: Sub(n.a, n.b) if isinstance(n, Add) and n.dtype.is_float else None)
    return func.with_body(body)


def test_the_pass_that_changes_a_result_is_named():
    wrong = func_pass(wrong_sums)
    passes = inserted(cpu_pipeline(), {"after:flatten_buffer": wrong})
    with pytest.raises(
        AssertionError, match=r"(?s)pass wrong_sums changed the result: interpreter: B\[0\] is.*\n\+ .* - A"
    ):
        testing.check_lowering(ROWS, passes=passes)
    testing.check_lowering(ROWS)


def test_a_pass_after_which_the_program_does_not_run_is_named():
    def out_of_bounds(mod: tir.IRModule) -> tir.IRModule:
        return tir.IRModule.of(tir.script.parse(mod["main"].script().replace("grid(8,", "grid(9,")))

    passes = inserted(cpu_pipeline(), {"before:simplify": out_of_bounds})
    with pytest.raises(AssertionError, match=r"pass out_of_bounds changed the result: .*out of bounds"):
        testing.check_lowering(ROWS, passes=passes)


def test_gpu_stages_run_as_far_as_the_executor_knows_them():
    sch = tir.Schedule(ROWS)
    i, k = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    testing.check_lowering(sch.mod, "cuda-sim")


STAGED = tir.script.parse("""
@T.prim_func
def staged(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.alloc_buffer((16,), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("S"):
                v = T.axis.spatial(16, t)
                S[v] = A[v] * T.float32(2)
        for t in T.thread_binding(16, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(16, t)
                B[v] = S[15 - v]
""")


def test_the_simulator_decides_about_threads_that_exchange_values():
    """The executor would run the second block of a thread before the first block of the next one."""
    testing.check_lowering(STAGED, "cuda")
    late = {"tir.add_lower_pass": [(3, func_pass(wrong_products))]}
    with (
        tir.transform.PassContext(config=late),
        pytest.raises(AssertionError, match="passes .*wrong_products.* changed"),
    ):
        testing.check_lowering(STAGED, "cuda")


def wrong_products(func: tir.PrimFunc) -> tir.PrimFunc:
    """A fault: float products are by one."""
    return func.with_body(
        rewrite(func.body, lambda n: tir.FloatImm(1.0, n.dtype) if isinstance(n, tir.FloatImm) else None)
    )


@pytest.fixture
def wrong_step():
    """A primitive that makes sums into differences."""

    def check(state: State, block: BlockRef):
        """Make float sums of a block differences."""
        return block.block

    @primitive(check=check, name="subtract_instead")
    def apply(state, plan):
        body = rewrite(plan.body, lambda n: Sub(n.a, n.b) if isinstance(n, Add) else None)
        return state.replace(plan, plan.replace(body=body))

    yield
    del PRIMITIVES["subtract_instead"]


def test_the_first_step_that_changes_a_result_is_named(wrong_step):
    def steps(sch):
        sch.split("k", [None, 8])
        sch.subtract_instead("B")
        sch.parallel("i")

    with pytest.raises(
        AssertionError, match=r"(?s)step 2 of 3, `subtract_instead\(\"B\"\)`, changed the result: .*\n\+ .* - A"
    ):
        testing.check_schedule(ROWS, steps)


def test_a_wrong_step_is_refused_where_each_step_is_run(wrong_step):
    sch = tir.Schedule(ROWS, verify="run")
    sch.split("k", [None, 8])
    with pytest.raises(tir.ScheduleError, match=r"something else: after it: B\[\d\] is -?[\d.]+, expected"):
        sch.subtract_instead("B")
    assert len(sch.trace) == 1


def test_a_failing_schedule_is_reduced(wrong_step):
    sch = tir.Schedule(ROWS)
    i, k = sch.get_loops("B")
    outer, inner = sch.split(k, [None, 8])
    sch.reorder(inner, outer)
    sch.subtract_instead("B")
    sch.parallel(i)

    def check(program, sch):
        testing.assert_same_result(program, sch.mod, engines=["interpreter"])

    case = testing.reduce_case(ROWS, check, sch.trace)
    assert [step.name for step in case.trace.insts] == ["subtract_instead"]
    shapes = [[int(n) for n in b.shape] for b in case.program.buffers()]
    assert all(n == 1 for shape in shapes for n in shape)
    with pytest.raises(AssertionError):
        check(case.program, case.trace.replay(case.program))


@pytest.fixture
def backwards():
    """A primitive that runs a loop backwards, legal or not."""

    def check(state: State, loop: LoopRef):
        """Run a loop backwards."""
        old, var = loop.node, loop.node.loop_var.replace()
        return old, old.replace(loop_var=var, body=substitute(old.body, {old.loop_var: old.extent - 1 - var}))

    @primitive(check=check, name="backwards")
    def apply(state, plan):
        old, new = plan
        return state.replace(old, new, moved={old.loop_var: [new.loop_var]})

    yield
    del PRIMITIVES["backwards"]


def test_a_reduced_case_is_not_a_program_that_is_wrong_by_itself(backwards):
    """With fewer statements the program reads memory that nothing wrote, which is the same type of error."""
    program = tir.script.parse("""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("A"):
            vi = T.axis.spatial(6, i)
            C[vi] = A[vi] + 1
    for j in range(6):
        B[j] = T.if_then_else(j > 0, B[j - 1] + A[j], C[j])
""")
    sch = tir.Schedule(program)
    sch.backwards("i")
    sch.backwards("j")

    def check(program, sch):
        testing.assert_same_result(program, sch.mod, engines=["interpreter"])

    case = testing.reduce_case(program, check, sch.trace)
    assert isinstance(case.error, tir.RunError) and len(case.trace.insts) == 1
    check(case.program, tir.Schedule(case.program))
    with pytest.raises(AssertionError, match=r"step 1 of 1, `backwards\("):
        testing.check_schedule(case.program, case.trace.apply_to_schedule)


def _mirrored(loop, var):
    return loop.extent - 1 - var, loop.extent


def _one_further(loop, var):
    return tir.expr.min_(var + 1, loop.extent - 1), loop.extent


def _one_less(loop, var):
    return var, loop.extent - 1


@pytest.fixture(params=[_mirrored, _one_further, _one_less])
def planted(request):
    """A primitive that changes what a loop runs, and says nothing of it: backwards, one further on, one iteration less."""

    def check(state: State, loop: LoopRef):
        """Change a loop."""
        old, var = loop.node, loop.node.loop_var.replace()
        index, extent = request.param(old, var)
        return old, old.replace(loop_var=var, extent=extent, body=substitute(old.body, {old.loop_var: index}))

    @primitive(check=check, name="planted")
    def apply(state, plan):
        old, new = plan
        return state.replace(old, new, moved={old.loop_var: [new.loop_var]})

    yield
    del PRIMITIVES["planted"]


@pytest.mark.parametrize("seed", [5, 12, 19])
def test_a_wrong_primitive_is_in_the_case_that_is_reduced(planted, seed):
    """Shrinking makes programs that read what nothing wrote, whatever a step does: these are no cases of it."""

    def check(program, sch):
        testing.assert_same_result(program, sch.mod, engines=["interpreter"])

    program = testing.random_program(seed)
    sch = tir.Schedule(program)
    for block in sch.get_child_blocks(sch.get_block("root")):
        for loop in sch.get_loops(block):
            with contextlib.suppress(tir.ScheduleError):
                sch.planted(loop)
    case = testing.reduce_case(program, check, sch.trace)
    assert [step.name for step in case.trace.insts] == ["planted"]
    check(case.program, tir.Schedule(case.program))
    with pytest.raises(AssertionError, match=r"step 1 of 1, `planted\("):
        testing.check_schedule(case.program, case.trace.apply_to_schedule)


def test_a_failing_program_is_reduced_to_what_fails():
    def check(program):
        assert "exp(" not in program.script() or program.script().count("for ") < 1

    case = testing.reduce_case(
        tir.script.parse("""
@T.prim_func
def f(n: T.int32, A: T.Buffer((16, 24), "float32"), B: T.Buffer((16, 24), "float32"), C: T.Buffer((16,), "float32")):
    D = T.alloc_buffer((16, 24))
    for i, j in T.grid(16, 24):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(i + j < n)
            if vi > 3:
                D[vi, vj] = A[vi, vj] * T.exp(A[vi, vj]) + T.float32(1)
    for i in T.parallel(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = D[vi, 0]
"""),
        check,
    )
    text = case.program.script()
    assert text.count("for ") == 1 and "range(1)" in text and "exp(" in text
    assert not any(part in text for part in ("if ", "where", "C", "n:", "parallel", "* T.exp"))
    assert case.tried < 300


def test_what_is_not_faulty_is_not_reduced():
    with pytest.raises(ValueError, match="nothing to reduce: the check accepts this case"):
        testing.reduce_case(ROWS, lambda program: None)


def test_another_error_is_not_the_same_fault():
    def check(program):
        text = program.script()
        if "grid(8, 32)" not in text:
            raise RuntimeError("another fault")
        raise ValueError("the fault")

    case = testing.reduce_case(ROWS, check)
    assert "grid(8, 32)" in case.program.script() and isinstance(case.error, ValueError)
