"""Programs of torch that compute with complex numbers inside: each against torch itself."""

from __future__ import annotations

import numpy as np
import pytest

import tir
from tir.graph import compile_graph
from tir.importers.torch import from_exported

torch = pytest.importorskip("torch", reason="torch is not installed: programs of another library")


def f(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape))) * 4 - 2


def z(x):
    return torch.view_as_complex(x)


def updated(x):
    made = torch.zeros_like(z(x))
    made[:, 1:3] = z(x)[:, :2] * 2
    return made


def rotated(x):
    angles = torch.outer(torch.arange(3.0), 1 / torch.arange(1.0, 5))
    return z(x) * torch.polar(torch.ones_like(angles), angles)


W = torch.complex(f(4, 3), f(3, 4).T)
PROGRAMS = {
    "products": lambda x: (z(x) * z(x).conj(), z(x) @ W, torch.einsum("ab,bc->ca", z(x), W), z(x) * x[..., 0], 2 * z(x)),
    "quotients": lambda x: (z(x) / (z(x) + 3), z(x) / 2, 1 / (z(x) + 3j), z(x) / x[..., 0].exp()),
    "sums": lambda x: (z(x) + x[..., 0], z(x) - 1, 1j - z(x), z(x).sum(0), z(x).mean(), z(x).cumsum(1), -z(x)),
    "exponentials": lambda x: (z(x).exp(), torch.exp(-1j * x[..., 0]), rotated(x)),
    "parts": lambda x: (z(x).abs(), z(x).angle(), z(x).real, z(x).imag, torch.complex(x[..., 0], x[..., 1]), torch.complex(x[:1, :, 0], x[:, :1, 1])),
    "moved": lambda x: (z(x).T, z(x)[:, 1:3], torch.cat([z(x), z(x)], 1), torch.stack(z(x).unbind(1)), z(x).reshape(2, 6).flip(0)),
    "updated": lambda x: (updated(x), torch.where(x[..., 0] > 0, z(x), 0.0), z(x)[:, [2, 0]], z(x).to(torch.complex128)),
    "transforms": lambda x: (torch.fft.fft(z(x)), torch.fft.ifft2(z(x), norm="ortho"), torch.fft.fftn(x).real, torch.fft.rfft2(x[..., 0])),
    "back": lambda x: (torch.fft.irfft2(z(x)), torch.fft.irfft(z(x), n=7), torch.fft.irfft(z(x), n=4, norm="forward"), torch.fft.hfft(z(x))),
    "padded": lambda x: (torch.nn.functional.pad(z(x), (0, 2, 1, 0)),),
    "windows": lambda x: (torch.stft(x.reshape(-1), 8, 4, window=torch.hann_window(8), return_complex=True).abs(),),
}  # fmt: skip


class Net(torch.nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x):
        return tuple(torch.view_as_real(y) if y.is_complex() else y for y in self.run(x))


@pytest.mark.parametrize("name", PROGRAMS)
def test_complex_numbers_make_what_torch_makes(name):
    net, x = Net(PROGRAMS[name]), f(3, 4, 2)
    graph = from_exported(torch.export.export(net, (x,), strict=False))
    made = compile_graph(graph, "interpreter")(x)
    for got, want in zip(made if isinstance(made, tuple) else (made,), net(x)):
        assert str(got.dtype) == str(want.dtype)[6:] and got.shape == want.shape
        np.testing.assert_allclose(got, want.resolve_conj().numpy(), rtol=1e-4, atol=1e-4)


def test_a_complex_result_is_refused_by_name():
    class Makes(torch.nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x)

    program = torch.export.export(Makes(), (f(4),), strict=False)
    with pytest.raises(tir.ModelError, match="its numbers are complex: make it torch.view_as_real"):
        from_exported(program)
