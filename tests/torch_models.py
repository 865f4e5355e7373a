"""Models of torch in plain modules, with weights of a seed, for tests of what imports and compiles them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 5))

    def forward(self, x):
        return self.layers(x).softmax(-1)


def _convolution(channels, out, kernel=3, stride=1, groups=1):
    return nn.Sequential(
        nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)
    )


class Residual(nn.Module):
    """As in ResNet: two convolutions, and the input, of which a convolution is added if the size changes."""

    def __init__(self, channels, out, stride) -> None:
        super().__init__()
        self.first, self.second = _convolution(channels, out, 3, stride), _convolution(out, out)
        self.short = _convolution(channels, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        made = self.second(F.relu(self.first(x), inplace=True))
        made += self.short(x)
        return F.relu(made, inplace=True)


class Inverted(nn.Module):
    """As in MobileNetV2: a wide depthwise convolution between two of single pixels."""

    def __init__(self, channels, out, stride) -> None:
        super().__init__()
        wide = 4 * channels
        self.expand, self.depth = _convolution(channels, wide, 1), _convolution(wide, wide, 3, stride, wide)
        self.project, self.adds = _convolution(wide, out, 1), stride == 1 and channels == out

    def forward(self, x):
        made = self.project(F.relu6(self.depth(F.relu6(self.expand(x)))))
        return x + made if self.adds else made


class Images(nn.Module):
    def __init__(self, *blocks) -> None:
        super().__init__()
        self.stem = nn.Sequential(_convolution(3, 8, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class Bert(nn.Module):
    def __init__(self, layers=2, width=32, heads=4, wide=64, words=50) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {n: nn.Linear(width, width) for n in "qkvo"}
                | {"up": nn.Linear(width, wide), "down": nn.Linear(wide, width)}
                | {"norm1": nn.LayerNorm(width), "norm2": nn.LayerNorm(width)}
            )
            for _ in range(layers)
        )

    def forward(self, ids):
        n, length = ids.shape
        x = self.norm(self.tokens(ids) + self.places(torch.arange(length)))
        for layer in self.layers:
            q, k, v = (layer[m](x).view(n, length, self.heads, -1).transpose(1, 2) for m in "qkv")
            scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
            x = layer["norm1"](x + layer["o"]((scores @ v).transpose(1, 2).reshape(n, length, -1)))
            x = layer["norm2"](x + layer["down"](F.gelu(layer["up"](x))))
        return x, torch.tanh(x[:, 0])


class Llama(nn.Module):
    """RMS norms, rotated queries and keys, fewer heads of keys than of queries, a gated network."""

    def __init__(self, layers=2, width=32, heads=4, groups=2, wide=48, words=50) -> None:
        super().__init__()
        self.heads, self.groups, self.depth = heads, groups, width // heads
        narrow = groups * self.depth

        def linear(rows, columns):
            return nn.Linear(rows, columns, bias=False)

        self.tokens = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "q": linear(width, width),
                    "k": linear(width, narrow),
                    "v": linear(width, narrow),
                    "o": linear(width, width),
                }
                | {"gate": linear(width, wide), "up": linear(width, wide), "down": linear(wide, width)}
                | {"norm1": nn.RMSNorm(width), "norm2": nn.RMSNorm(width)}
            )
            for _ in range(layers)
        )
        self.norm, self.head = nn.RMSNorm(width), linear(width, words)
        angles = torch.outer(torch.arange(64), 1 / 10000 ** (torch.arange(0, self.depth, 2) / self.depth))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1))

    def rotated(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos[: x.shape[-2]] + torch.cat([-b, a], -1) * self.sin[: x.shape[-2]]

    def forward(self, ids):
        n, length = ids.shape
        x = self.tokens(ids)
        for layer in self.layers:
            y = layer["norm1"](x)
            q = layer["q"](y).view(n, length, self.heads, -1).transpose(1, 2)
            k, v = (layer[m](y).view(n, length, self.groups, -1).transpose(1, 2) for m in "kv")
            made = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True, enable_gqa=True)
            x = x + layer["o"](made.transpose(1, 2).reshape(n, length, -1))
            y = layer["norm2"](x)
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return self.head(self.norm(x))


def _images(*blocks):
    return Images(*blocks), torch.randn(2, 3, 32, 32)


MODELS = {
    "perceptron": lambda: (Perceptron(), torch.randn(3, 20)),
    "residual": lambda: _images(Residual(8, 8, 1), Residual(8, 16, 2)),
    "inverted": lambda: _images(Inverted(8, 8, 1), Inverted(8, 16, 2)),
    "bert": lambda: (Bert(), torch.randint(0, 50, (2, 12))),
    "llama": lambda: (Llama(), torch.randint(0, 50, (1, 10))),
}


def model_and_input(name):
    """A model in its mode of inference, and an input of it."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    return model.eval(), x
