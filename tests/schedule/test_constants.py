"""Constant parameters, and functions split by what these determine."""

import random

import numpy as np
import pytest

import tir
from tir import te
from tir.analysis.effects import effects
from tir.interp import run
from tir.schedule import constants
from tir.schedule.constants import Foldable, constant_parameters
from tir.script import parse

PRODUCT = """
@T.prim_func
def product(x: T.Buffer((3, 8), "float32"), w: T.Buffer((10, 8), "float32"), y: T.Buffer((3, 10), "float32")):
    T.func_attr({"tir.constant": ["w"]})
    for i, j, k in T.grid(3, 10, 8):
        with T.block("y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] += x[vi, vk] * w[vj, vk]
"""


def packed() -> tir.Schedule:
    sch = tir.Schedule(parse(PRODUCT))
    sch.pad_einsum("y", [1, 4, 1])
    (pad,) = (b for b in sch.get_producers("y") if sch.get(b).writes[0].buffer.name.startswith("w"))
    sch.transform_layout(pad, ("write", 0), lambda j, k: (j // 4, k, j % 4))
    return sch


def program(*lines: str, constant: str = '"w"', more: str = "") -> tir.PrimFunc:
    """A function of x, w and y of 8 elements, with buffers a and b: each line is the store of a block."""
    blocks = "".join(
        f"""
    for i{n} in range(8):
        with T.block("s{n}"):
            i = T.axis.spatial(8, i{n})
            {line}"""
        for n, line in enumerate(lines)
    )
    return parse(f"""
@T.prim_func
def f(x: T.Buffer((8,), "float32"), w: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32"){more}):
    T.func_attr({{"tir.constant": [{constant}]}})
    a = T.alloc_buffer((8,), "float32")
    b = T.alloc_buffer((8,), "float32"){blocks}
""")


def names(func: tir.PrimFunc) -> list[str]:
    return [b.name for b in func.buffers()]


def reason(func: tir.PrimFunc) -> str:
    with pytest.raises(tir.TirError) as refusal:
        tir.fold_constants(func)
    return str(refusal.value)


def in_parts(func: tir.PrimFunc, arrays: dict[str, np.ndarray]) -> None:
    """Run the maker and then the program on ``arrays``, by name."""
    parts = tir.fold_constants(func)
    made = {b.name: np.full([int(s) for s in b.shape], np.nan, str(b.dtype)) for b in parts.maker.buffers()}
    made.update({name: array for name, array in arrays.items() if name in made})
    run(parts.maker, *made.values())
    run(parts.program, *({**made, **arrays}[name] for name in names(parts.program)))


def test_padded_panels_of_a_weight_become_a_parameter_and_the_weight_goes():
    sch = packed()
    parts = sch.fold_constants()
    assert names(parts.program) == ["x", "y", "w_pad"] and names(parts.maker) == ["w", "w_pad"]
    assert parts.program.attrs["tir.constant"] == ("w_pad",)
    assert sch.func.attrs["tir.constant"] == ("w",)
    for func in parts:
        tir.assert_structural_equal(parse(func.script()), func)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 8), np.float32), rng.standard_normal((10, 8), np.float32)
    for execute in (run, lambda func, *args: tir.build(func, "llvm")(*args)):
        panels, y = np.full((3, 8, 4), np.nan, np.float32), np.zeros((3, 10), np.float32)
        execute(parts.maker, w, panels)
        execute(parts.program, x, y, panels)
        np.testing.assert_allclose(y, x.astype(np.float64) @ w.T, rtol=1e-5)


def test_parameters_are_named_or_numbered():
    func = parse(PRODUCT)
    numbered = func.without_attr("tir.constant").with_attr("layout_free_buffers", [1])
    assert constant_parameters(func) == constant_parameters(numbered) == (func.buffers()[1],)
    assert constant_parameters(func.without_attr("tir.constant")) == ()


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"tir.constant": ["W"]}, "no parameter with a buffer; these are x, w, y"),
        ({"tir.constant": [3]}, "names 3, which is no parameter"),
        ({"layout_free_buffers": [3]}, "parameters count from 0"),
        ({"layout_free_buffers": ["w"]}, "parameters count from 0"),
        ({"layout_free_buffers": [-1]}, "parameters count from 0"),
    ],
)
def test_an_attribute_that_is_of_no_parameter_is_refused(attributes, message):
    with pytest.raises(tir.TirError, match=message):
        constant_parameters(parse(PRODUCT).with_attr(attributes))


def test_a_scalar_is_no_constant_parameter():
    func = program("y[i] = w[i]", more=", n: T.int32").without_attr("tir.constant")
    with pytest.raises(tir.TirError, match="parameter n has no buffer"):
        constant_parameters(func.with_attr("layout_free_buffers", [3]))


def test_what_folded_statements_make_is_constant_for_others_in_turn():
    parts = tir.fold_constants(program("a[i] = w[i] + 1.0", "b[i] = a[7 - i]", "y[i] = x[i] * b[i]"))
    assert names(parts.program) == ["x", "y", "b"] and names(parts.maker) == ["w", "b"]
    assert [b.name for b in parts.maker.root.alloc_buffers] == ["a"] and not parts.program.root.alloc_buffers


def test_a_constant_that_is_still_read_stays():
    assert names(tir.fold_constants(program("a[i] = w[i] + 1.0", "y[i] = w[i] * a[i]")).program) == ["x", "w", "y", "a"]


def test_a_table_of_no_parameter_is_folded():
    parts = tir.fold_constants(program("a[i] = T.float32(2) * T.cast(i, 'float32')", "y[i] = x[i] * a[i]", constant=""))
    assert names(parts.maker) == ["a"]


def test_a_new_parameter_has_a_name_of_its_own():
    func = program("a[i] = w[i] + 1.0", "y[i] = x[i] * a[i]")
    a = func.root.alloc_buffers[0]
    named = tir.visit.substitute(func.body, {}, {a: a.replace(name="x")})
    assert len(set(names(tir.fold_constants(func.with_body(named)).program))) == 3


@pytest.mark.parametrize(
    "lines, message",
    [
        (["a[i] = w[i] + x[i]", "y[i] = a[i]"], "block `s0` reads x, which is no constant"),
        (["y[i] = w[i] * 2.0"], "block `s0` writes y, which is no global buffer"),
        (["a[i] = w[i]", "a[i] = a[i] + x[i]", "y[i] = a[i]"], "block `s0` writes a, as block `s1` does"),
        (
            ["a[i] = w[i]", "y[i] = a[i] * x[i]", "a[i] = w[i] + 1.0", "x[i] = a[i]"],
            "block `s0` writes a after block `s1` has read it",
        ),
        (
            ["a[i] = w[i] * T.float32(2)", "b[i] = a[i] + x[i]", "a[i] = b[i]", "y[i] = a[i]"],
            "after block `s1` has read it",
        ),
        (["w[i] = T.float32(0)", "y[i] = w[i]"], "writes w, which its attribute calls constant"),
    ],
)
def test_what_constants_do_not_determine_is_refused_with_the_reason(lines, message):
    assert message in reason(program(*lines))


def test_what_is_known_only_at_the_call_is_not_folded():
    func = program("a[i] = w[i] + T.cast(n, 'float32')", "y[i] = x[i] * a[i]", more=", n: T.int32")
    assert "uses n, which is known only at the call" in reason(func)


def test_opaque_calls_are_not_folded():
    func = program("a[i] = T.call_extern('float32', 'f', w[i])", "y[i] = x[i] * a[i]")
    assert "has effects that are not known" in reason(func)


def test_parameters_that_may_overlap_are_not_folded():
    func = program("a[i] = w[i] + 1.0", "y[i] = x[i] * a[i]")
    assert "may have several names" in reason(func.with_attr("tir.noalias", False))


def test_registers_are_no_parameter():
    func = program("a[i] = w[i] + 1.0", "y[i] = x[i] * a[i]")
    sch = tir.Schedule(func)
    sch.set_scope("s0", 0, "local")
    assert "block `s0` writes a, which is no global buffer" in reason(sch.func)


def test_a_lowered_function_is_refused():
    assert "fold before lowering" in reason(tir.lower(program("y[i] = w[i]"))["main"])


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_the_same_in_two_parts(seed):
    rng = random.Random(seed)
    lines, known = [], {"x", "w"}
    for target in [*rng.choices(["a", "b", "a", "b", "y"], k=rng.randint(2, 6)), "y"]:
        terms = [
            f"{rng.choice(sorted(known))}[{rng.choice(['i', '7 - i', 'i // 2'])}]" for _ in range(rng.randint(1, 2))
        ]
        own = f" + {target}[i]" if target in known and rng.random() < 0.3 else ""
        lines.append(f"{target}[i] = {' * '.join(terms)}{own}")
        known.add(target)
    func = program(*lines)
    values = np.random.default_rng(seed).standard_normal((2, 8)).astype(np.float32)
    whole = {"x": values[0], "w": values[1], "y": np.zeros(8, np.float32)}
    parts = {name: array.copy() for name, array in whole.items()}
    run(func, *whole.values())
    try:
        in_parts(func, parts)
    except tir.TirError as refusal:
        assert "nothing of f can be folded" in str(refusal)
    else:
        for name, array in whole.items():
            np.testing.assert_array_equal(parts[name], array)


def test_many_random_programs_can_be_folded():
    folded = 0
    for seed in range(30):
        rng = random.Random(seed)
        lines = [f"{rng.choice('ab')}[i] = {rng.choice('wx')}[i]" for _ in range(2)]
        try:
            tir.fold_constants(program(*lines, "y[i] = a[i] + b[i]"))
            folded += 1
        except tir.TirError:
            pass
    assert 3 < folded < 30


def test_what_many_statements_do_is_found_once(monkeypatch):
    asked = []
    monkeypatch.setattr(constants, "effects", lambda s: asked.append(s) or effects(s))
    made = [te.placeholder((8,), "float32", "A")]
    for n in range(40):
        made.append(te.compute((8,), lambda i, of=made[-1]: of[i] + 1.0, name=f"B{n}"))
    func = te.create_prim_func([made[0], made[-1]])
    assert len(Foldable(func).reasons) == len(asked) == 40
    assert len(Foldable(func.with_attr("tir.constant", ["A"])).statements()) == 39
