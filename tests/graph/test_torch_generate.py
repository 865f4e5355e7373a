"""A seeded llama that keeps keys and values in buffers generates the words that torch generates without any."""

from __future__ import annotations

import numpy as np
import pytest

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


def graph_of(llama, rows):
    example = torch.zeros(rows, dtype=torch.long), torch.arange(rows)
    return from_exported(torch.export.export(llama, example))


def state_of(graph):
    return [v.name for v in graph.inputs if v.name in graph.outputs]


def generated(prefill, decode, words, count):
    """Words, and the scores of each."""
    state, words, scores = decode.new_state(), list(words), []
    logits = prefill(np.int64(words), np.arange(len(words)), state=state)
    for _ in range(count):
        scores.append(logits[-1])
        words.append(int(logits[-1].argmax()))
        logits = decode(np.int64(words[-1:]), np.int64([len(words) - 1]), state=state)
    return words, np.stack(scores)


def test_a_llama_generates_the_words_that_torch_generates(llama):
    graphs = [graph_of(llama, rows) for rows in (PROMPT, 1)]
    assert len(state_of(graphs[1])) == 2 * LAYERS
    prompt = [int(n) for n in np.random.default_rng(0).integers(0, WORDS, PROMPT)]
    words, scores = generated(*(compile_graph(g, state=state_of(g)) for g in graphs), prompt, NEW)
    want, wanted = list(prompt), []
    with torch.no_grad():
        for _ in range(NEW):
            wanted.append(llama(torch.tensor(want))[-1].numpy())
            want.append(int(wanted[-1].argmax()))
    assert words == want and len(words) == MOST
    np.testing.assert_allclose(scores, np.stack(wanted), rtol=1e-3, atol=1e-4)


def test_a_llama_of_small_integers_starts_alike(llama):
    graphs = [quantize(graph_of(llama, rows), "int8") for rows in (PROMPT, 1)]
    prompt = list(range(PROMPT))
    _, scores = generated(*(compile_graph(g, state=state_of(g)) for g in graphs), prompt, 1)
    with torch.no_grad():
        wanted = llama(torch.tensor(prompt))[-1].numpy()
    np.testing.assert_allclose(scores[0], wanted, atol=0.05 * np.abs(wanted).max())
