"""A browser that nobody sees, for tests: playwright and a Chromium of the system (``apt-get install chromium``)."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def missing(*packages: str) -> list[str]:
    """What a test that needs a browser and these packages does not find here."""
    found = [name for name in ("playwright", *packages) if importlib.util.find_spec(name) is None]
    return found + ([] if CHROMIUM else ["a Chromium browser"])


@contextmanager
def started() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


def own_address() -> str:
    """An address of this machine that is no loopback: a browser takes its pages over plain http as insecure."""
    from tir.notebook import server

    return server._own_address()


def keep_picture(page: Any, name: str, **options: Any) -> None:
    """A picture of a page or a part of it, in few colours, in the folder ``TIR_SCREENSHOTS``, if that is set (needs Pillow)."""
    folder = os.environ.get("TIR_SCREENSHOTS")
    if folder:
        from PIL import Image

        picture = Image.open(io.BytesIO(page.screenshot(**options))).convert("RGB")
        picture.quantize(128, dither=Image.Dither.NONE).save(Path(folder) / f"{name}.png", optimize=True)
