"""A seeded llama that keeps keys and values in buffers generates the words that torch generates without any."""

from __future__ import annotations

import numpy as np
import pytest

from tests.random_graphs import expected
from tir.graph import compile_graph, quantize

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from tir.importers.torch import from_exported  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # torch uses what it gives up

WIDTH, HEADS, PAIRS, HIDDEN, WORDS, LAYERS, PROMPT, NEW = 64, 4, 2, 96, 50, 2, 8, 64
SIZE, MOST = WIDTH // HEADS, PROMPT + NEW


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.w


class Llama(nn.Module):
    """Words at ``places`` attend to all that the buffers have up to there, or without ``places`` to one another."""

    def __init__(self):
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(WORDS, WIDTH), Norm(), nn.Linear(WIDTH, WORDS, bias=False)
        linear = {"q": (WIDTH, WIDTH), "k": (WIDTH, PAIRS * SIZE), "v": (WIDTH, PAIRS * SIZE), "o": (WIDTH, WIDTH), "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}  # fmt: skip
        self.layers = nn.ModuleList(
            nn.ModuleDict({n: nn.Linear(*of, bias=False) for n, of in linear.items()} | {"n1": Norm(), "n2": Norm()})
            for _ in range(LAYERS)
        )
        for n in range(LAYERS):
            self.register_buffer(f"keys{n}", torch.zeros(PAIRS, MOST, SIZE))
            self.register_buffer(f"values{n}", torch.zeros(PAIRS, MOST, SIZE))
        angles = torch.outer(torch.arange(MOST), 1 / 10000 ** (torch.arange(0, SIZE, 2) / SIZE))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def forward(self, ids, places=None):
        rows = ids.shape[0]
        at = torch.arange(rows) if places is None else places
        x = self.words(ids)

        def turned(t):
            half = torch.cat([-t[..., SIZE // 2 :], t[..., : SIZE // 2]], -1)
            return t * self.cos[at] + half * self.sin[at]

        for n, layer in enumerate(self.layers):
            y = layer["n1"](x)
            q, k, v = (layer[p](y).view(rows, -1, SIZE).transpose(0, 1) for p in "qkv")
            q, k = turned(q), turned(k)
            if places is not None:
                k = getattr(self, f"keys{n}").index_copy_(1, places, k)
                v = getattr(self, f"values{n}").index_copy_(1, places, v)
            k, v = (t.repeat_interleave(HEADS // PAIRS, 0) for t in (k, v))
            seen = torch.arange(k.shape[1])[None] <= at[:, None]
            scores = (q @ k.transpose(-1, -2) / SIZE**0.5).masked_fill(~seen, -1e9)
            x = x + layer["o"]((torch.softmax(scores, -1) @ v).transpose(0, 1).reshape(rows, WIDTH))
            y = layer["n2"](x)
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return self.head(self.norm(x))


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    return Llama().eval()


@pytest.fixture(scope="module")
def graph(llama):
    """One graph for words of any number, which are added to those that the buffers have."""
    rows = torch.export.Dim("rows", min=1, max=MOST)
    example = torch.zeros(PROMPT, dtype=torch.long), torch.arange(PROMPT)
    return from_exported(torch.export.export(llama, example, dynamic_shapes=({0: rows}, {0: rows})))


def state_of(graph):
    return [v.name for v in graph.inputs if v.name in graph.outputs]


def generated(model, state):
    """The prompt and what follows, word by word, and the scores of each; ``model`` is called with words, their places and the state."""
    words, scores = [int(n) for n in np.random.default_rng(0).integers(0, WORDS, PROMPT)], []
    logits = model(np.int64(words), np.arange(PROMPT), state=state)
    for _ in range(NEW):
        scores.append(logits[-1])
        words.append(int(logits[-1].argmax()))
        logits = model(np.int64(words[-1:]), np.int64([len(words) - 1]), state=state)
    return words, np.stack(scores)


def test_one_module_reads_a_prompt_and_generates_the_words_that_torch_generates(llama, graph):
    assert len(state_of(graph)) == 2 * LAYERS
    model = compile_graph(graph, state=state_of(graph))
    words, scores = generated(model, model.new_state())
    want, wanted = words[:PROMPT], []
    with torch.no_grad():
        for _ in range(NEW):
            wanted.append(llama(torch.tensor(want))[-1].numpy())
            want.append(int(wanted[-1].argmax()))
    assert words == want and len(words) == MOST
    np.testing.assert_allclose(scores, np.stack(wanted), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("kind", "rows"), [("int8", []), ("int4", [1])])
def test_weights_of_small_integers_generate_what_the_references_of_their_operators_do(llama, graph, kind, rows):
    small = quantize(graph, kind)
    model = compile_graph(small, state=state_of(graph), cases=[dict.fromkeys(graph.symbols, n) for n in rows])

    def by_references(words, places, state):
        one = small.at(dict.fromkeys(small.symbols, len(words)))
        given = {"ids": words, "places": places, **state}
        made = dict(expected(one, [given[v.name] for v in one.inputs]))
        state.update({name: made.pop(name) for name in state})
        return next(iter(made.values()))

    (words, scores), (want, wanted) = (generated(each, model.new_state()) for each in (model, by_references))
    assert words == want
    np.testing.assert_allclose(scores, wanted, rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        exact = llama(torch.tensor(words[:PROMPT]))[-1].numpy()
    np.testing.assert_allclose(scores[0], exact, atol=(0.05 if kind == "int8" else 0.5) * np.abs(exact).max())
