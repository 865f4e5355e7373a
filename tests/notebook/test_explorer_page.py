"""The explorer on a page of its own, in a browser that nobody sees: keys, splitters, lines that light up, failures."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import tir
from tests import in_browser
from tir import te
from tir.notebook.server import Server

MISSING = in_browser.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def browser():
    with in_browser.started() as made:
        yield made


def matmul() -> tir.Schedule:
    A, B, k = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B"), te.reduce_axis((0, 256), "k")
    C = te.compute((256, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
    return tir.Schedule(te.create_prim_func([A, B, C]))


@contextmanager
def explored(browser, width: int = 1440):
    """The page of a matmul, in which nothing goes wrong that is not shown."""
    with Server(matmul()) as server:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(20_000)
        failures: list[str] = []
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
        page.goto(server.url)
        page.locator(".tir-row").first.wait_for()
        yield page
        page.close()
    assert [said for said in failures if "ERR_FAILED" not in said] == []  # a request that a test ends


def lit(page, part: str) -> list[str]:
    return page.locator(f"{part} .tir-lit").all_inner_texts()


def test_keys_go_through_the_tree(browser):
    with explored(browser) as page:
        tree = page.get_by_role("tree")
        assert tree.get_by_role("treeitem").count() == 4
        page.locator(".tir-row[data-place=i]").focus()
        for key, place in (
            ("ArrowDown", "j"),
            ("End", "C"),
            ("ArrowLeft", "k"),
            ("ArrowUp", "j"),
            ("Home", "i"),
            ("ArrowRight", "j"),
        ):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.dataset.place") == place, key
        page.keyboard.press("Enter")
        page.get_by_role("treeitem", selected=True).wait_for()
        page.locator("[data-apply=parallel]").wait_for()
        page.keyboard.press("Alt+ArrowUp")
        page.locator(".tir-step", has_text='1: reorder("j", "i")').wait_for()
        assert page.evaluate("document.activeElement.dataset.place") == "j"
        page.keyboard.press("Control+z")
        page.locator(".tir-step", has_text="0: start").wait_for()


@pytest.mark.parametrize("pane", ["lowered", "llvm", "asm"])
def test_lines_light_up_both_ways(browser, pane):
    with explored(browser) as page:
        page.locator(f"[data-pane={pane}]").click()
        page.locator(f"tir-pane[data-shown={pane}]").wait_for()
        page.locator(".tir-row[data-place=j]").hover()
        assert lit(page, "tir-program")[0].lstrip().startswith("for i, j, k") and lit(page, "tir-pane")
        assert any("j" in line for line in lit(page, "tir-pane"))
        page.locator("tir-pane .tir-lit").first.hover()
        chosen = page.locator(".tir-row.tir-lit").get_attribute("data-place")
        assert chosen in "ijk" and lit(page, "tir-program")
        page.locator("tir-program [data-line]", has_text="T.reads").hover()
        assert page.locator(".tir-row.tir-lit").get_attribute("data-place") == "C"
        page.locator("tir-program [data-line]", has_text="T.reads").click()
        page.locator(".tir-row[data-place=C][aria-selected=true]").wait_for()
        page.locator("[data-offer=cache_read]").wait_for()


def test_a_page_is_busy_until_the_last_message_is_answered(browser):
    with explored(browser) as page:
        held = []
        page.route(
            "**/*",
            lambda route: held.append(route) if '"check"' in (route.request.post_data or "") else route.continue_(),
        )
        page.locator(".tir-check").click()
        page.locator(".tir-row[data-place=j]").click()
        page.locator(".tir-row[data-place=j][aria-selected=true]").wait_for()
        page.locator(".tir-gain", has_text="…").first.wait_for(state="detached")
        assert page.locator("[aria-busy]").count() == 1, "others were answered meanwhile"
        (check,) = held
        check.abort()
        page.locator("[aria-busy]").wait_for(state="detached")
        assert "does not answer" in page.locator(".tir-error").inner_text()
        page.unroute_all()
        page.locator(".tir-close").click()
        page.locator(".tir-error").wait_for(state="detached")


def test_splitters_are_dragged_and_moved_by_keys(browser):
    with explored(browser) as page:
        bar = page.get_by_label("width of the tree")
        before = page.locator("tir-tree").bounding_box()["width"]
        box = bar.bounding_box()
        page.mouse.move(box["x"] + 3, box["y"] + 200)
        page.mouse.down()
        page.mouse.move(box["x"] + 103, box["y"] + 200)
        page.mouse.up()
        wider = page.locator("tir-tree").bounding_box()["width"]
        assert abs(wider - before - 100) < 8
        bar.focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("tir-tree").bounding_box()["width"] < wider
        assert bar.get_attribute("role") == "separator" and 12 <= int(bar.get_attribute("aria-valuenow")) <= 88


@pytest.mark.parametrize("width", [1440, 700])
def test_nothing_stands_outside_of_the_page(browser, width):
    with explored(browser, width) as page:
        page.locator(".tir-row[data-place=i]").click()
        page.locator("[data-choice]").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for part in ("tir-tree", "tir-offers", "tir-program", "tir-pane"):
            box = page.locator(part).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] > 100, part


def test_a_loop_is_split_by_its_handle(browser):
    with explored(browser) as page:
        box = page.locator(".tir-row[data-place=k] .tir-split").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 3 * 14, y, steps=6)  # 2, 4, 8
        assert page.locator(".tir-row[data-place=k] .tir-split").inner_text() == "÷ 8"
        page.mouse.up()
        page.locator(".tir-step", has_text='1: split("k", factors=[None, 8])').wait_for()
        page.locator(".tir-row[data-place=k_1][aria-selected=true]").wait_for()
        page.locator(".tir-row[data-place=j] .tir-split").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        page.locator(".tir-step", has_text='2: split("j", factors=[None, 4])').wait_for()
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 90, y)
        page.mouse.move(x, y)
        page.mouse.up()  # back where it was: no step
        page.locator(".tir-row[data-place=i]").click()
        page.locator(".tir-row[data-place=i][aria-selected=true]").wait_for()
        assert page.locator(".tir-step").inner_text().startswith("2:")


def test_a_loop_that_is_dragged_stays_while_answers_come(browser):
    with explored(browser) as page:
        page.locator(".tir-row[data-place=k]").hover()
        page.mouse.down()
        page.locator(".tir-row[data-place=j]").hover()  # the drag begins
        page.locator(".tir-row[data-place=k]").evaluate("(row) => row.setAttribute('data-dragged', 'yes')")
        page.locator(".tir-run").evaluate("(button) => button.click()")
        page.locator("[aria-busy]").wait_for()
        page.locator("[aria-busy]").wait_for(state="detached")
        assert page.locator(".tir-row[data-dragged]").count() == 1 and not page.locator(".tir-ran span").count()
        page.locator(".tir-row[data-place=i]").hover()
        page.mouse.up()
        page.locator(".tir-step", has_text='1: reorder("k", "i", "j")').wait_for()


def test_pictures_beside_the_program(browser):
    with explored(browser) as page:
        page.locator(".tir-row[data-place=k]").click()
        page.locator("[data-pane=accesses]").click()
        page.locator(".tir-picture svg", has_text="A by k").wait_for()
        assert page.locator(".tir-picture svg").count() == 3
        page.locator(".tir-row[data-place=j]").click()
        page.locator(".tir-picture svg", has_text="B by j").wait_for()
        page.locator(".tir-gain", has_text="…").first.wait_for(state="detached")
        in_browser.keep_picture(page, "explorer-accesses-light")
        page.locator("[data-pane=footprint]").click()
        page.locator(".tir-picture", has_text="roofline").wait_for()
        in_browser.keep_picture(page, "explorer-footprint-light")
        assert page.locator("[data-pane=banks]").count() == 0, "there is no shared memory"
        page.get_by_label("program after a pass").select_option("after simplify")
        page.locator("tir-pane[data-shown='after simplify'] [data-line]").first.wait_for()


def test_offers_by_group_and_what_is_typed(browser):
    with explored(browser) as page:
        page.locator(".tir-row[data-place=k]").click()
        page.locator("[data-group=tile]").click()
        page.locator("[data-offer=reorder]").wait_for(state="detached")
        assert page.locator("[data-offer=split] .tir-gain").inner_text() != ""
        page.locator("[data-offer=split] summary").click()
        page.locator("[data-offer=split] input[name=factors]").fill("[2, 8, 16]")
        page.locator("[data-offer=split] [data-choice='[None, 8]']").wait_for()  # while estimates come, it stays
        assert page.locator("[data-offer=split] input[name=factors]").input_value() == "[2, 8, 16]"
        page.locator("[data-try=split]").click()
        page.locator(".tir-row[data-place=k_2][aria-selected=true]").wait_for()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 700)])
def test_a_page_of_its_own(browser, scheme, width):
    A, B, k = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B"), te.reduce_axis((0, 32), "k")
    C = te.compute((32, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
    with Server(tir.Schedule(te.create_prim_func([A, B, C])), in_browser.own_address()) as server:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(20_000)
        failures: list[str] = []
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
        page.goto(server.url)
        view = page.locator(".tir-explorer")
        loops = view.locator(".tir-row[draggable=true]")
        loops.first.click()
        view.locator("[data-offer=split]").wait_for()
        in_browser.keep_picture(page, f"page-{scheme}-{width}")
        view.locator("[data-apply=parallel]").click()
        view.locator(".tir-step", has_text="parallel").wait_for()  # (no script by text: the page's policy allows none)
        for step in (0, 1):
            view.locator(".tir-slider").evaluate(f"e => {{ e.value = {step}; e.dispatchEvent(new Event('input')); }}")
            view.locator(".tir-step", has_text=f"{step}:").wait_for()
            view.locator(".tir-run").click()
            view.locator(".tir-ran", has_text="right").wait_for()
        assert view.locator(".tir-bar").count() == 2
        view.locator(".tir-check").click()
        view.locator(".tir-ran", has_text="right by the reference executor").wait_for()
        in_browser.keep_picture(page, f"page-{scheme}-{width}-ran")
        assert failures == []
    view.locator(".tir-undo").click()
    view.locator(".tir-error").wait_for()
    assert "does not answer" in view.locator(".tir-error").inner_text()
    page.close()
