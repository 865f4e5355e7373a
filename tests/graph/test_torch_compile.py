"""The backend of ``torch.compile``: what it runs is what torch runs, and what it does not run is reported."""

from __future__ import annotations

import pathlib
import pkgutil
import re

import pytest

import tir

torch = pytest.importorskip("torch", reason="torch is not installed: programs of another library")
from torch import nn  # noqa: E402
from torch_models import MODELS, model_and_input  # noqa: E402

from tir.importers.torch import backend, report  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with torch.no_grad():
        yield


class Seen:
    """What a test adds to the report."""

    def __init__(self) -> None:
        self.before = report()

    @property
    def models(self):
        return report().models - self.before.models

    @property
    def eager(self):
        old = {(row[0], row[4]): row[2] for row in self.before.eager}
        return {(row[0], row[4]) for row in report().eager if row[2] > old.get((row[0], row[4]), 0)}


def compiled(function, target="interpreter", **options):
    return torch.compile(function, backend=backend, options={"target": target}, **options)


def same(function, *args, **options):
    """The compiled function and the function make the same of the arguments, and change them the same way."""
    mine, theirs = ([a.clone() if isinstance(a, torch.Tensor) else a for a in args] for _ in range(2))
    torch.testing.assert_close(compiled(function, **options)(*mine), function(*theirs), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_one_model_and_right(name):
    seen = Seen()
    model, x = model_and_input(name)
    torch.testing.assert_close(compiled(model, "llvm")(x), model(x), rtol=1e-3, atol=1e-4)
    assert seen.models == 1 and not seen.eager


def test_torch_finds_the_backend_by_its_name():
    text = (pathlib.Path(tir.__file__).parents[1] / "pyproject.toml").read_text()
    (named,) = re.findall(r'torch_dynamo_backends\][^\n]*\ntir = "(.*)"', text)
    assert pkgutil.resolve_name(named) is backend


def test_parameters_are_constants_that_are_made_again_when_they_change():
    seen = Seen()
    model = nn.Linear(4, 3)
    run = compiled(model)
    x = torch.rand(2, 4)
    for _ in range(2):
        torch.testing.assert_close(run(x), model(x))
    assert seen.models == 1
    model.weight.mul_(2)
    torch.testing.assert_close(run(x), model(x))
    model.weight.data = torch.rand(3, 4)
    torch.testing.assert_close(run(x), model(x))
    assert seen.models == 3


def test_a_buffer_that_each_call_changes_becomes_an_input():
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(2))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    seen = Seen()
    model = Counts()
    run = compiled(model)
    made = [run(torch.ones(2)).tolist() for _ in range(6)]
    assert made == [[n, n] for n in (1, 2, 3, 4, 5, 6)] and model.calls.tolist() == [6, 6]
    assert seen.models <= 4


def test_models_of_one_class_have_parameters_of_their_own():
    first, second = nn.Linear(4, 3), nn.Linear(4, 3)
    runs = compiled(first), compiled(second)
    x = torch.rand(2, 4)
    for _ in range(2):
        for run, model in zip(runs, (first, second)):
            torch.testing.assert_close(run(x), model(x))


def test_an_operator_without_a_row_runs_between_two_models_and_is_reported():
    seen = Seen()
    same(lambda x: (torch.special.bessel_j0(x @ x + torch.eye(4)) * 2 + 1).relu(), torch.rand(4, 4))
    ((operator, why),) = seen.eager
    assert operator == "aten.special_bessel_j0" and "no row" in why and seen.models == 2
    assert "aten.special_bessel_j0" in str(report())


def test_the_result_of_an_operator_that_a_row_does_not_make_comes_from_torch():
    seen = Seen()
    same(
        lambda x: [t * 2 for t in torch.native_layer_norm(x.relu() + 1, [4], None, None, 1e-5)],
        torch.rand(1, 2, 4, 4),
    )
    assert {why for _, why in seen.eager} == {"the moments of a normalization"}


def test_a_graph_break_is_reported():
    def function(x):
        y = x * 2 + 1
        if y.sum() > 0:
            y = y - 1
        return y.relu() * 3

    seen = Seen()
    same(function, torch.rand(3))
    assert seen.models == 2 and any(operator == "graph break" for operator, _ in seen.eager)


def test_a_graph_that_needs_gradients_is_run_by_torch_and_reported():
    seen = Seen()
    model = nn.Linear(4, 3)
    x = torch.rand(2, 4)
    with torch.enable_grad():
        compiled(model)(x).sum().backward()
    torch.testing.assert_close(model.weight.grad, x.sum(0).expand(3, 4))
    assert seen.models == 0 and "under torch.no_grad()" in next(why for _, why in seen.eager)


def test_inputs_are_updated_in_place():
    def function(x, y):
        x.add_(y)
        y[0] = 7
        return x * 2

    same(function, torch.rand(2, 3), torch.rand(2, 3))


def test_results_share_memory_as_they_do_in_torch():
    def function(x):
        y = x + 1
        return x.view(-1), y, y[1:], y.t()

    x = torch.rand(3, 4)
    flat, y, part, turned = compiled(function)(x)
    assert flat.data_ptr() == x.data_ptr() and part.data_ptr() == y[1:].data_ptr()
    torch.testing.assert_close([flat, y, part, turned], list(function(x)))
    y.zero_()
    assert turned.abs().sum() == 0


@pytest.mark.parametrize(
    "given", [lambda x: x, lambda x: x.transpose(1, 2), lambda x: x[:, ::2], lambda x: x.expand(2, -1, -1, -1)[1]]
)
def test_layouts_of_inputs_and_results_are_those_of_torch(given):
    def function(x):
        y = (x.transpose(0, 2) * 2).contiguous()
        return y.transpose(0, 1), x.permute(2, 0, 1) + 1, x.exp()

    x = given(torch.rand(3, 4, 5))
    made, expected = compiled(function)(x), function(x)
    torch.testing.assert_close(made, expected)
    assert [t.stride() for t in made] == [t.stride() for t in expected]


@pytest.mark.parametrize(
    "overlapping",
    [lambda x: x.expand(3, 4), lambda x: x.unfold(0, 2, 1), lambda x: x.view(1, 4).expand(2, 4).unfold(1, 3, 1).mT],
)
def test_results_may_have_one_element_at_several_places(overlapping):
    def function(x):
        return overlapping(x.exp())

    x = torch.arange(4.0)
    made, expected = compiled(function)(x), function(x)
    torch.testing.assert_close(made, expected)
    assert made.stride() == expected.stride()


def test_images_with_their_channels_last_are_taken():
    model, x = model_and_input("inverted")
    x = x.to(memory_format=torch.channels_last)
    torch.testing.assert_close(compiled(model, "llvm")(x), model(x), rtol=1e-3, atol=1e-4)


def test_symbolic_sizes_have_a_model_each():
    seen = Seen()
    run = compiled(lambda x: x.reshape(x.shape[0] * 2, -1).softmax(-1) * x.shape[0], dynamic=True)
    for n in (2, 5, 3, 5):
        x = torch.rand(n, 4)
        torch.testing.assert_close(run(x), x.reshape(n * 2, -1).softmax(-1) * n)
    assert seen.models == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_tensors_of_every_type_are_taken_and_made(dtype):
    same(lambda x: (torch.where(x > 0, x, x.flip(0)), x.to(torch.float32).sum()), torch.arange(-2, 4).to(dtype))


def test_numbers_none_and_nested_results_are_those_of_torch():
    same(lambda x, n: {"a": (x * n, None, n), "b": [x.shape[0]]}, torch.rand(3), 4)


@pytest.mark.parametrize(
    "draw",
    [torch.rand_like, lambda x: torch.randint_like(x, 1, 99), torch.Tensor.exponential_, torch.Tensor.uniform_,
     torch.Tensor.cauchy_, torch.Tensor.log_normal_, torch.Tensor.normal_, lambda x: x.geometric_(0.1)],
)  # fmt: skip
def test_random_numbers_are_drawn_by_torch(draw):
    seen, made = Seen(), []

    def function(x):
        return (x + draw(x.clone())) * 2

    for run in compiled(function), function:
        torch.manual_seed(1)
        made.append(run(torch.zeros(4)))
    torch.testing.assert_close(*made)
    assert {why for _, why in seen.eager} == {"it draws random numbers"}


def test_what_cannot_be_compiled_is_run_by_torch():
    seen = Seen()
    model = nn.Linear(4, 3)
    x = torch.rand(2, 4)
    torch.testing.assert_close(compiled(model, "cuda")(x), model(x))
    ((what, why),) = seen.eager
    assert seen.models == 0 and what == "graph" and why.startswith("this backend makes models for llvm and interpreter")
    with pytest.raises(Exception, match="unknown target kind 'none'"):
        compiled(model.double(), "none")(x.double())


def test_bytes_between_elements_are_left_to_torch():
    x = torch.arange(70, dtype=torch.uint8).reshape(1, 2, 5, 7) * 3

    def resized(x):
        return torch.nn.functional.interpolate(x, size=(11, 3), mode="bilinear")

    assert torch.equal(torch.compile(resized, backend="tir")(x), resized(x))


@torch.no_grad()
def test_a_graph_in_parts_is_read_again_when_its_weights_have_changed():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.BatchNorm2d(4), nn.Sigmoid(), nn.Conv2d(4, 2, 1)).train()
    run = torch.compile(model, backend="tir")
    for _ in range(3):
        x = torch.rand(2, 3, 4, 4)
        torch.testing.assert_close(run(x), model(x))
        model[0].weight.data = model[0].weight * 2
