"""A conv2d scheduled in the explorer by clicks and drags alone; ``pytest -s`` prints how many, and how fast it is beside
``tir.tune.default``."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tir
from tests import in_browser
from tir import te
from tir.notebook.server import Server

MOST_CLICKS = 25
MISSING = in_browser.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")


def conv2d():
    """C[y, x, o] = sum of X[y + p - 1, x + q - 1, c] * W[p, q, c, o], zeros outside of X."""
    X, W = te.placeholder((28, 28, 64), name="X"), te.placeholder((3, 3, 64, 64), name="W")
    p, q, c = te.reduce_axis((0, 3), "p"), te.reduce_axis((0, 3), "q"), te.reduce_axis((0, 64), "c")

    def padded(y, x, c):
        return te.if_then_else(te.all(y >= 1, y < 29, x >= 1, x < 29), X[y - 1, x - 1, c], 0.0)

    P = te.compute((30, 30, 64), padded, "P")
    C = te.compute((28, 28, 64), lambda y, x, o: te.sum(P[y + p, x + q, c] * W[p, q, c, o], axis=[p, q, c]), "C")
    return te.create_prim_func([X, W, C])


def by_hand() -> tir.Schedule:
    """The schedule that the clicks are to make: tiles of 7 pixels by 64 channels in registers."""
    sch = tir.Schedule(conv2d())
    _, x, o, p, q, c = sch.get_loops("C")
    _, x_1 = sch.split(x, [None, 7])
    sch.unroll(x_1)
    o_0, o_1, o_2 = sch.split(o, [None, 4, 16])
    sch.vectorize(o_2)
    sch.unroll(o_1)
    sch.reorder(p, q, c, x_1, o_0, o_1, o_2)
    sch.decompose_reduction("C", p)
    sch.parallel(sch.get_loops("C_update")[0])
    y, _, channel = sch.get_loops("P")
    sch.vectorize(sch.split(channel, [None, 16])[1])
    sch.parallel(y)
    return sch


class Mouse:
    """Clicks and drags in the explorer of a page, counted."""

    def __init__(self, page):
        self.page, self.count, self.steps = page, 0, 0

    def row(self, name: str):
        return self.page.locator(f".tir-row[data-place='{name}']")

    def choose(self, name: str) -> None:
        self.row(name).click()
        self.count += 1
        self.page.locator(f".tir-row[data-place='{name}'][aria-selected=true]").wait_for()

    def take(self, name: str, value: str = "") -> None:
        """Take a step that is offered, with its usual values or another that is shown beside it."""
        offer = self.page.locator(f"[data-offer={name}]")
        offer.locator(f"[data-choice='{value}']" if value else "[data-apply]").click()
        self.stepped(name)

    def drag(self, name: str, to: str) -> None:
        self.row(name).hover()
        self.page.mouse.down()
        for _ in range(2):  # browsers say that something is dragged over a row at the second move
            self.row(to).hover()
        self.page.mouse.up()
        self.stepped("reorder")

    def stepped(self, name: str) -> None:
        self.count += 1
        self.steps += 1
        self.page.locator(".tir-step", has_text=f"{self.steps}: {name}").wait_for()


def schedule(mouse: Mouse) -> None:
    mouse.choose("C.x")
    mouse.take("split", "[None, 7]")  # the inner loop is chosen then
    mouse.take("unroll")
    mouse.choose("o")
    mouse.take("split", "[None, 4, 16]")
    mouse.take("vectorize")
    mouse.choose("o_1")
    mouse.take("unroll")
    for loop in ("p", "q", "C.c"):
        mouse.drag(loop, "x_1")
    mouse.choose("p")
    mouse.take("decompose_reduction")
    mouse.choose("C_init.y")
    mouse.take("parallel")
    mouse.choose("P.c")
    mouse.take("split", "[None, 16]")
    mouse.take("vectorize")
    mouse.choose("P.y")
    mouse.take("parallel")


def ratio_to_the_tuner(sch: tir.Schedule) -> float:
    """The least times of the tuner's schedule and of this one, measured by turns."""
    modules = [tir.build(s.mod) for s in (tir.tune.default(conv2d()), sch)]
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, dtype="float32") for shape in ((28, 28, 64), (3, 3, 64, 64))]
    outputs = [np.zeros((28, 28, 64), "float32") for _ in modules]
    least = [float("inf"), float("inf")]
    for _ in range(40):
        for n, module in enumerate(modules):
            start = time.perf_counter()
            module["main"](*inputs, outputs[n])
            least[n] = min(least[n], time.perf_counter() - start)
    np.testing.assert_allclose(*outputs, rtol=1e-4)
    return least[0] / least[1]


@pytest.fixture(scope="module")
def browser():
    with in_browser.started() as made:
        yield made


@pytest.mark.parametrize(
    ("host", "scheme", "width"), [("127.0.0.1", "light", 1440), ("own", "dark", 1440), ("own", "light", 700)]
)
def test_a_conv2d_is_scheduled_by_mouse_alone(browser, host, scheme, width):
    sch = tir.Schedule(conv2d())
    with Server(sch, in_browser.own_address() if host == "own" else host) as server:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(20_000)
        failures: list[str] = []
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
        page.goto(server.url)
        assert page.evaluate("isSecureContext") is (host == "127.0.0.1")
        mouse = Mouse(page)
        mouse.row("P").wait_for()
        in_browser.keep_picture(page, f"conv2d-before-{scheme}-{width}", full_page=width < 900)
        schedule(mouse)
        page.locator("[data-tab=diff]").click()
        page.locator("ins", has_text="parallel").wait_for()
        in_browser.keep_picture(page, f"conv2d-after-{scheme}-{width}", full_page=width < 900)
        assert failures == [] and not page.locator(".tir-error").count()
        page.close()
    assert tir.structural_equal(sch.mod, by_hand().mod)
    assert mouse.count <= MOST_CLICKS
    print(f"\n{mouse.count} clicks and drags; {ratio_to_the_tuner(sch):.2f} of the speed of tir.tune.default")
