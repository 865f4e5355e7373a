"""The moving picture of the landing page: the explorer while a product is scheduled.

``python docs/site/moving.py`` needs playwright, Pillow and a Chromium of the system. It takes the steps in Python, photographs the
page after each, and writes an animated WebP for light and one for dark pages.
"""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

import tir
from tir.notebook.server import Server
from tir.script import tir as T

IMAGES = Path(__file__).parents[1] / "images"
WIDTH, HEIGHT, SECONDS = 1280, 720, 1.6


@T.prim_func
def matmul(A: T.Buffer((768, 768), "float32"), B: T.Buffer((768, 768), "float32"), C: T.Buffer((768, 768), "float32")):
    for i, j, k in T.grid(768, 768, 768):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


# what is done, and the loop that is chosen after it
STEPS = (
    (lambda sch: None, "j"),
    (lambda sch: sch.split("j", [None, 2, 16]), "j_0"),
    (lambda sch: sch.split("i", [None, 8]), "i_1"),
    (lambda sch: sch.reorder("i_0", "j_0", "k", "i_1", "j_1", "j_2"), "k"),
    (lambda sch: sch.vectorize("j_2"), "j_2"),
    (lambda sch: sch.unroll("j_1"), "j_1"),
    (lambda sch: sch.unroll("i_1"), "i_1"),
    (lambda sch: sch.parallel("i_0"), "i_0"),
)


def frames(page: Page) -> list[Image.Image]:
    """A picture of the page after each step."""
    sch = tir.Schedule(matmul)
    made = []
    with Server(sch) as server:
        for step, chosen in STEPS:
            step(sch)
            page.goto(server.url)
            page.locator(f'[data-place="{chosen}"]').first.click()
            page.wait_for_timeout(1500)
            made.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    return made


def main() -> None:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme=scheme,  # pyright: ignore[reportArgumentType]
            )
            first, *rest = frames(page)
            target = IMAGES / f"explorer-moving-{scheme}.webp"
            durations = [int(1000 * SECONDS)] * len(rest) + [int(2500 * SECONDS)]  # the end stays longer
            first.save(target, save_all=True, append_images=rest, duration=durations, loop=0, quality=60, method=6)
            print(target, target.stat().st_size)
        browser.close()


if __name__ == "__main__":
    main()
