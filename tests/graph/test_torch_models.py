"""Programs of torch: exported, imported, compiled, and judged by torch."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import tir
from tir.errors import RunError
from tir.graph import ModelError, compile_graph, parse
from tir.importers.torch import from_exported

torch = pytest.importorskip("torch", reason="torch is not installed: programs of another library")
from torch import nn  # noqa: E402
from torch_models import MODELS, model_and_input  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # torch uses what it gives up


def close(made, expected):
    made, expected = (e if isinstance(e, tuple) else (e,) for e in (made, expected))
    assert len(made) == len(expected)
    for got, want in zip(made, expected):
        want = want.detach().numpy()
        assert np.asarray(got).dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * abs(want).max())


@pytest.mark.parametrize("target", ["llvm", "cuda-sim"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_computes_what_torch_computes(name, target):
    model, x = model_and_input(name)
    close(tir.compile(torch.export.export(model, (x,)), target)(x), model(x))


def test_linear_layers_take_their_weights_turned_once_and_normalizations_go_into_convolutions():
    program = torch.export.export(*[f(a) for f, a in zip((lambda m: m, lambda x: (x,)), model_and_input("residual"))])
    made = compile_graph(from_exported(program), "interpreter")
    operators = [node.operator for node in made.graph.nodes]
    assert "nn.batch_norm" not in operators and made.kernels[-1] == "matmul_add"


class Module(nn.Module):
    """A function as a module."""

    def __init__(self, function, **buffers) -> None:
        super().__init__()
        self.function = function
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, *args):
        return self.function(self, *args)


def exported(function, *args, dynamic=None, **buffers):
    return torch.export.export(Module(function, **buffers), args, dynamic_shapes=dynamic)


def compiled(function, *args, **buffers):
    return compile_graph(from_exported(exported(function, *args, **buffers)), "interpreter")


def test_an_operator_without_a_row_is_decomposed():
    x = torch.rand(3, 4)
    close(
        compiled(lambda m, x: torch.nn.functional.glu(x) + torch.special.xlog1py(x[:, 2:], x[:, :2]), x)(x),
        (torch.nn.functional.glu(x) + torch.special.xlog1py(x[:, 2:], x[:, :2])),
    )


def test_in_place_operations_and_views_are_those_of_torch():
    def function(m, x):
        y = x * 2
        view = y[1:]
        view += 1
        y.clamp_(max=2)
        return y, view

    x = torch.rand(3, 4)
    close(compiled(function, x)(x), function(None, x))


def test_numbers_none_and_several_results_are_taken():
    x = torch.rand(3, 4)
    made = compiled(lambda m, x, n, nothing: (x * n, x.max(1), x.shape[0]), x, 3, None)
    close(made(x)[:3], (x * 3, *x.max(1)))
    assert made(x)[3] == 3


def test_symbolic_sizes_stay_or_are_given_at_import():
    size = torch.export.Dim("n")
    program = exported(
        lambda m, x: x.reshape(x.shape[0] * 2, 2).sum(0) / x.shape[0], torch.rand(3, 4), dynamic=(({0: size},),)
    )
    at_any = tir.compile(program)
    (name,) = (s.arg.name for s in program.graph_signature.input_specs if s.target is None)
    for n in (2, 5):
        x = torch.rand(n, 4)
        made = compile_graph(from_exported(program, shapes={name: (n, 4)}), "interpreter")
        for model in (made, at_any):
            close(model(x), x.reshape(2 * n, 2).sum(0) / n)
    for shapes, says in [({name: (2, 5)}, "which is"), ({name: (2,)}, "which is"), ({"y": (2, 4)}, "no input")]:
        with pytest.raises(ModelError, match=says):
            from_exported(program, shapes=shapes)


def test_a_program_is_for_sizes_inside_its_limits():
    n, m = torch.export.Dim("n", min=3, max=9), torch.export.Dim("m")
    x, y = torch.rand(4, 2), torch.rand(5)
    program = exported(lambda m, x, y: (x[:3] + torch.ones(3, 2), y[:1] + y), x, y, dynamic=(({0: n}, {0: m}),))
    graph = from_exported(program)
    assert str(parse(str(graph), dict(zip((v.name for v in graph.constants), graph.constants.values())))) == str(graph)
    model = compile_graph(graph)
    for rows, others in ((3, 1), (9, 2)):
        x, y = torch.rand(rows, 2), torch.rand(others)
        close(model(x, y), (x[:3] + 1, y[:1] + y))
    name = graph.symbols[0]
    for rows, why in ((2, "is less than 3, the least"), (10, "is more than 9, the most")):
        with pytest.raises(
            RunError,
            match=f"the size {name} {why} that the program was made for; the arrays of the call have {name} = {rows}",
        ):
            model(torch.rand(rows, 2), y)
        with pytest.raises(ModelError, match=f"a size is {rows}, and the program was made for sizes from 3 to 9"):
            from_exported(program, shapes={graph.inputs[0].name: (rows, 2)})
    with pytest.raises(ModelError, match="a size is 2"):
        compile_graph(graph, cases=[{name: 2}])


@pytest.mark.parametrize("times", [1, 2])
def test_what_the_limits_of_sizes_decide_is_decided_at_import(times):
    size, kept = torch.export.Dim("n", min=2, max=8), torch.rand(8 * times)
    program = exported(
        lambda m, x: m.kept[torch.sym_max(len(m.kept) - x.shape[0], 0) :] + x,
        torch.rand(5 * times), dynamic=(({0: times * size},),), kept=kept,
    )  # fmt: skip
    model = compile_graph(from_exported(program))
    for n in (2, 5, 8):
        x = torch.rand(n * times)
        close(model(x), kept[len(kept) - len(x) :] + x)
    with pytest.raises(RunError, match=rf"the size .* is more than {8 * times}, the most that .* have \w+ = 9"):
        model(torch.rand(9 * times))


def test_indices_of_symbolic_sizes_meet():
    b, l = torch.export.Dim("b"), torch.export.Dim("l")

    def function(m, x):
        rows, columns = torch.arange(x.shape[0]), torch.arange(x.shape[1])
        return x[rows[:, None, None], columns[None, None]]

    model = tir.compile(exported(function, torch.rand(3, 4), dynamic=(({0: b, 1: l},),)))
    x = torch.rand(2, 5)
    close(model(x), x[:, None])


def test_all_that_cannot_be_imported_is_one_table():
    def function(m, x):
        return torch.linalg.eigvalsh(x) + torch.linalg.eigvalsh(x + torch.rand_like(x)), x.nonzero(), torch.fft.fft(x)

    with pytest.raises(ModelError) as caught:
        from_exported(exported(function, torch.rand(3, 3)))
    rows = {row[0]: row for row in caught.value.faults}
    assert rows["aten._linalg_eigh"][1:3] == ("default", 2)
    assert "no row" in rows["aten._linalg_eigh"][4]
    assert "random" in rows["aten.rand_like"][4] and "size of its result" in rows["aten.nonzero"][4]
    assert "complex" in rows["result"][4]


def test_regions_of_images_by_torchvision():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    image, regions = torch.rand(2, 3, 12, 12), torch.tensor([[0, 1.0, 2, 9, 8], [1, 0, 0, 20, 23.5]])
    for count, aligned in ((2, False), (-1, True)):
        made = compiled(lambda m, x, r: ops.roi_align(x, r, (3, 4), 0.5, count, aligned), image, regions)
        close(made(image, regions), ops.roi_align(image, regions, (3, 4), 0.5, count, aligned))


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolutions_of_torchvision(masked):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    image, weight, offset, bias = (
        torch.rand(2, 4, 7, 8),
        torch.rand(6, 2, 3, 2),
        torch.randn(2, 24, 4, 7),
        torch.rand(6),
    )
    mask = torch.rand(2, 12, 4, 7) if masked else None

    def function(m, x, w, o, b):
        return ops.deform_conv2d(x, o, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 1), mask=mask)

    close(
        compiled(function, image, weight, offset, bias)(image, weight, offset, bias),
        function(None, image, weight, offset, bias),
    )


def test_largest_elements_of_regions_by_torchvision():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    image, regions = torch.rand(2, 3, 12, 12), torch.tensor([[0, 1.0, 2, 9, 8], [1, 0, 0, 20, 23.5]])
    made = compiled(lambda m, x, r: ops.roi_pool(x, r, (3, 4), 0.5), image, regions)
    close(made(image, regions), ops.roi_pool(image, regions, (3, 4), 0.5))


def test_a_view_of_memory_is_of_the_memory_that_its_tensor_has():
    x = torch.rand(4, 6)
    function = lambda m, x: (x.t().as_strided((2, 5), (7, 3), 1), x[1:].as_strided((3,), (2,)))  # noqa: E731
    close(compiled(function, x)(x), function(None, x))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_branches_are_chosen_at_import_or_when_the_program_runs(sign):
    def function(m, x):
        when_it_runs = torch.cond(x.sum() > 0, lambda x: (x * m.kept, x + 1), lambda x: (-x, x - 1), (x,))
        return (*when_it_runs, torch.cond(m.kept[0] > 5, lambda x: x * 2, lambda x: x - m.kept, (x,)))

    x, kept = sign * torch.rand(3, 4), torch.rand(4)
    close(compiled(function, x, kept=kept)(x), function(SimpleNamespace(kept=kept), x))


def test_loops_whose_steps_are_known_are_written_step_by_step():
    from torch._higher_order_ops import map, scan, while_loop

    def function(m, x):
        count, power = while_loop(lambda n, x: n < 4, lambda n, x: (n + 1, x * 1.5 + n), (torch.tensor(0), x))
        last, rows = scan(lambda s, row: (s * 0.5 + row, (s + row).clone()), torch.zeros(4), x, dim=0)
        return count, power, last, rows, map(lambda row: row.softmax(0), x)

    x = torch.rand(3, 4)
    close(compiled(function, x)(x), function(None, x))
    endless = exported(lambda m, x: while_loop(lambda x: x.sum() < 9, lambda x: (x * 2,), (x,)), x)
    with pytest.raises(ModelError, match="its condition after 0 steps is known only when it runs"):
        from_exported(endless)


def test_what_torch_wraps_round_a_part_is_decomposed():
    def function(m, x):
        with torch.autocast("cpu", torch.bfloat16):
            product = x @ x.T
        return torch.vmap(lambda row: row.cumsum(0))(x), product.float()

    x = torch.eye(3, 4)
    close(compiled(function, x)(x), function(None, x))


def test_a_number_that_is_known_only_when_it_runs_is_one_fault():
    with pytest.raises(ModelError, match="1 node of the model cannot be imported") as caught:
        from_exported(exported(lambda m, x, n: x[:, : n.item()] * 2, torch.rand(3, 4), torch.tensor(2)))
    assert [row[0] for row in caught.value.faults] == ["aten.item"]


def test_a_number_that_only_checks_read_is_not_needed():
    def checked(m, x, lengths):
        torch._check(lengths.max().item() <= x.shape[1])
        torch._check(torch._is_all_true(x == x).item())
        return x * lengths[:, None]

    x, lengths = torch.ones(2, 3), torch.tensor([3, 1])
    close(compiled(checked, x, lengths)(x, lengths), x * lengths[:, None])


def test_buffers_that_a_program_updates_are_state():
    def function(m, x):
        m.count.add_(1)
        return x * m.count

    graph = from_exported(exported(function, torch.ones(3), count=torch.zeros(())))
    (name,) = [v.name for v in graph.inputs if v.name in graph.outputs]
    model = compile_graph(graph, state=[name])
    state = model.new_state()
    assert [float(model(np.ones(3, "float32"), state=state)[0]) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm2d(3), nn.BatchNorm2d(3, affine=False, momentum=0.4), nn.InstanceNorm2d(3, track_running_stats=True)]
)  # fmt: skip
@torch.no_grad()
def test_a_normalization_in_training_makes_its_running_moments(norm):
    x = torch.rand(2, 3, 4, 5) - 0.4
    norm.running_mean += 0.7
    model = compile_graph(from_exported(torch.export.export(norm, (x,))), "interpreter")
    *state, _ = (parameter.name.removeprefix("b_") for parameter in model.inputs)
    made = model(*(norm.get_buffer(name) for name in state), x)
    close(made, (norm(x), *map(norm.get_buffer, state)))


def test_a_program_that_updates_an_input_is_refused():
    def function(m, x):
        return x.add_(1)

    with pytest.raises(ModelError, match="changes a tensor in place"):
        from_exported(exported(function, torch.rand(3)))


def test_training_is_refused_with_the_way_out():
    program = torch.export.export(nn.Sequential(nn.Dropout(), nn.ReLU()).train(), (torch.rand(3),))
    with pytest.raises(ModelError, match=r"model.eval\(\)"):
        from_exported(program)


def test_what_is_no_program_is_refused():
    for wrong in (nn.Linear(2, 2), torch.ones(2), None):
        with pytest.raises(ModelError, match="a program is a torch.export.ExportedProgram, not"):
            from_exported(wrong)
    with pytest.raises(ModelError, match="complex"):
        from_exported(exported(lambda m, x: x.real, torch.ones(2, dtype=torch.complex64)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_constants_of_every_type_are_read(dtype):
    x = torch.ones(3, dtype=dtype)
    kept = torch.arange(6).to(dtype)
    made = compiled(lambda m, x: torch.cat([x, m.kept[::2]]), x, kept=kept)(x)
    assert made.astype("float64").tolist() == torch.cat([x, kept[::2]]).double().tolist()


def test_an_attention_of_open_length_sees_what_is_before():
    program = exported(
        lambda m, x: torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
        torch.rand(1, 2, 5, 4), dynamic=(({2: torch.export.Dim("n", min=2)},),),
    )  # fmt: skip
    model = tir.compile(program)
    for length in (5, 2, 13):
        x = torch.rand(1, 2, length, 4)
        np.testing.assert_allclose(model(x), program.module()(x), rtol=1e-5)


@pytest.mark.parametrize(("mode", "factor"), [("nearest", 2.0), ("bilinear", 1.5), ("nearest", 0.5)])
def test_an_image_of_open_size_is_scaled(mode, factor):
    size = 2 * torch.export.Dim("n", min=2)
    scale = torch.nn.functional.interpolate
    program = exported(
        lambda m, x: scale(x, scale_factor=factor, mode=mode), torch.rand(1, 1, 6, 4), dynamic=(({2: size},),)
    )
    model = tir.compile(program)
    for rows in (6, 4, 10):
        x = torch.rand(1, 1, rows, 4)
        np.testing.assert_allclose(model(x), scale(x, scale_factor=factor, mode=mode), rtol=1e-5)


def _relu_of_a_convolution(m, x):
    made = torch.nn.functional.conv2d(x, m.w).relu_()
    return made.add_(x.mean()).mul_(made.sigmoid())  # the sigmoid is read before


def _a_view_changes(m, x):
    made = torch.nn.functional.conv2d(x, m.w)
    made[:, :1].relu_()
    return made


def _read_afterwards(m, x):
    made = torch.nn.functional.conv2d(x, m.w)
    return made.relu_() + 1, made


def _what_a_dropout_leaves(m, x):
    made = torch.nn.functional.conv2d(x, m.w)
    same = torch.dropout(made, 0.5, False)
    return same.relu_() * 2, made


def _another_view_is_read(m, x):
    made = torch.nn.functional.conv2d(x, m.w)
    first, second = made.view(-1), made.view(3, -1)
    return first.relu_() + 1, second


@pytest.mark.parametrize(
    ("function", "is_alone"),
    [(_relu_of_a_convolution, True), (_a_view_changes, False), (_read_afterwards, True), (_what_a_dropout_leaves, True), (_another_view_is_read, False)],
)  # fmt: skip
def test_what_changes_in_place_is_new_where_nothing_else_reads_it(function, is_alone, monkeypatch):
    x, decomposed = torch.randn(1, 2, 5, 5), []
    program = exported(function, x.clone(), w=torch.randn(3, 2, 3, 3))
    expected = program.module()(x.clone())
    whole = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(
        torch.export.ExportedProgram, "run_decompositions", lambda *a: decomposed.append(1) or whole(*a)
    )
    made = compile_graph(from_exported(program), "interpreter")(x.clone())
    for ours, theirs in zip(*((each,) if not isinstance(each, tuple) else each for each in (made, expected))):
        close(ours, theirs)
    assert bool(decomposed) != is_alone


def test_parts_of_an_open_length_are_replaced():
    def function(m, x):
        x = x.clone()
        x[:, 1:3] = 0.5
        x[:, :-1, 0] = x[:, 1:, 1]
        x[:, -1] = 2.0
        return x

    program = exported(function, torch.rand(2, 5, 3), dynamic=(({1: torch.export.Dim("n", min=4)},),))
    model = tir.compile(program, "interpreter")
    for length in (4, 7):
        x = torch.rand(2, length, 3)
        np.testing.assert_allclose(model(x), program.module()(x), rtol=1e-5)
