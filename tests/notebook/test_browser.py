"""The explorer in JupyterLab, in a browser that nobody sees: runs the notebook, moves the slider, takes a step, undoes it.

Needs JupyterLab, playwright and a Chromium of the system (``apt-get install chromium``). ``TIR_SCREENSHOTS=folder`` keeps
pictures of it, in light and dark.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests import in_browser

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/examples/explorer.ipynb"
MISSING = in_browser.missing("jupyterlab", "anywidget")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab whose folder has the notebook."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(NOTEBOOK, folder / NOTEBOOK.name)
    settings = folder / "settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "themes.jupyterlab-settings").write_text(
        '{"adaptive-theme": true}'
    )  # light or dark as the browser asks
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    port = free_port()
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "run",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
    }
    found = {**os.environ, "PYTHONPATH": str(ROOT), **{name: str(folder / at) for name, at in places.items()}}
    options = [
        f"--ServerApp.port={port}",
        "--ServerApp.ip=0.0.0.0",
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        "--ServerApp.password=",
    ]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"],
            env=found,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"{address}/api").read()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def browser():
    with in_browser.started() as made:
        yield made


def opened(browser, lab: str, scheme: str, width: int = 1500):
    """The notebook, run in full, in a page of the colours ``scheme``."""
    page = browser.new_page(viewport={"width": width, "height": 1000 if width > 900 else 1600}, color_scheme=scheme)
    page.set_default_timeout(40_000)
    page.goto(f"{lab}/lab/tree/{NOTEBOOK.name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.get_by_text("| Idle").wait_for()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()
    page.wait_for_selector(".tir-explorer", state="attached")
    if width < 900:
        page.keyboard.press("Control+b")  # as one does there, without the list of files
        page.locator("#jp-left-stack").wait_for(state="hidden")
    return page


def shoot(page, name: str) -> None:
    in_browser.keep_picture(page.locator(".tir-explorer"), name)


@pytest.mark.parametrize("width", [1500, 700])
def test_plain_http_and_loops_that_move(lab, browser, width):
    page = opened(browser, lab.replace("127.0.0.1", in_browser.own_address()), "light", width)
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('5: parallel')")
    assert not page.evaluate("isSecureContext")
    view = page.locator(".tir-explorer")
    loops = view.locator(".tir-row[draggable=true]")
    before = loops.evaluate_all("rows => rows.map((row) => row.dataset.place)")
    view.locator(".tir-row[data-place=k]").click()
    view.locator("[data-offer=unroll]").wait_for()
    shoot(page, f"explorer-{width}-http")

    view.locator(".tir-row[data-place=k]").drag_to(view.locator(f".tir-row[data-place={before[-1]}]"))
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('6: reorder')")
    after = loops.evaluate_all("rows => rows.map((row) => row.dataset.place)")
    assert after[-1] == "k" and sorted(after) == sorted(before)
    view.locator(".tir-row[data-place=k]").press("Alt+ArrowUp")
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('7: reorder')")
    assert loops.nth(len(after) - 2).get_attribute("data-place") == "k"
    assert page.evaluate("document.activeElement.dataset.place") == "k"

    view.locator(".tir-replay > summary").click()
    view.locator(".tir-copy").click()
    page.wait_for_function("/Copied|Selected/.test(document.querySelector('.tir-copy').textContent)")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tutorial(lab, browser, scheme):
    page = opened(browser, lab, scheme)
    view = page.locator(".tir-explorer")
    last = view.locator(".tir-step")
    page.wait_for_function(
        "document.querySelector('.tir-step').textContent.startsWith('5: parallel')"
    )  # the later cell's

    view.locator(".tir-slider").evaluate("e => { e.value = 3; e.dispatchEvent(new Event('input')); }")
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('3: reorder')")
    view.locator("[data-tab=diff]").click()
    assert "for j_0 in T.serial(" in view.locator(".tir-line-to").first.inner_text()
    shoot(page, f"explorer-history-{scheme}")
    view.locator("[data-tab=program]").click()
    view.locator(".tir-slider").evaluate("e => { e.value = 5; e.dispatchEvent(new Event('input')); }")

    view.locator(".tir-row[data-place=k]").click()
    view.locator("[data-offer=unroll]").wait_for()
    assert "tir-refused" in view.locator("[data-offer=parallel]").get_attribute("class")
    assert "both write" in view.locator("[data-offer=parallel] .tir-reason").inner_text()
    assert view.locator(".tir-code .tir-marked").count() > 2
    view.locator("[data-pane=llvm]").click()
    view.locator("tir-pane", has_text="define").wait_for()
    page.wait_for_function("[...document.querySelectorAll('.tir-gain')].every((gain) => gain.textContent !== '…')")
    shoot(page, f"explorer-{scheme}")

    view.locator("[data-offer=split] summary").click()
    view.locator("[data-offer=split] input[name=factors]").fill("[None, 16]")
    view.locator("[data-offer=split] [data-try=split]").click()
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('6: split')")
    assert 'split("k", factors=[None, 16])' in last.inner_text()
    assert view.locator(".tir-row[data-place=k_1]").count() == 1
    view.locator(".tir-undo").click()
    page.wait_for_function("document.querySelector('.tir-step').textContent.startsWith('5: parallel')")
    assert view.locator(".tir-row[data-place=k]").count() == 1 and view.locator(".tir-row[data-place=k_1]").count() == 0

    view.locator(".tir-row[data-place=k]").click()
    view.locator("[data-offer=parallel] summary").click()
    view.locator("[data-try=parallel]").click()
    view.locator(".tir-error").wait_for()
    assert "loop `k` cannot be parallel" in view.locator(".tir-error").inner_text()
    shoot(page, f"explorer-refused-{scheme}")
    page.close()
