"""The studio in a real browser: every view, the hands, the address, the keyboard, 360 pixels, no network.

It needs playwright and a chromium (`make browser` installs both); where one is missing the tests are skipped.
`pytest -s` prints how long the first picture and a drag take; nothing is asserted of times.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.studio.fitted import Fitted
from mercer.studio.presets import PRESETS
from mercer.studio.state import State

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make browser")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if BROWSER is None:
    pytest.skip("there is no chromium: make browser", allow_module_level=True)

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
VIEWS = ("kernel", "gram", "space", "certificate", "choice", "why", "compare")
# Where the pictures of the documents are written, if anybody asks for them.
PICTURES = os.environ.get("MERCER_STUDIO_PICTURES")


@pytest.fixture(scope="module")
def address():
    """`mercer studio` as a user starts it."""
    program = [sys.executable, "-m", "mercer", "studio", "--no-browser", "--json"]
    running = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield json.loads(running.stdout.readline())["url"]
    finally:
        running.terminate()
        running.communicate(timeout=30)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as run:
        found = run.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def tab(chromium, address):
    """Pages on the studio from which nothing else can be reached; errors of the console fail the test."""
    opened = []
    wrong: list[str] = []
    elsewhere: list[str] = []

    def guard(route):
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    def make(width: int = 1200, height: int = 780, scheme: str = "light", hash: str = "", wait: bool = True):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.route("**/*", guard)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address + hash)
        if wait:
            page.wait_for_selector("[data-shown]", timeout=60_000)
        opened.append(context)
        return page

    yield make
    for context in opened:
        context.close()
    assert wrong == []
    assert elsewhere == []


def until(page, expression: str, argument: object = None) -> None:
    """Until an expression of the page is true. Playwright's own waiting evaluates text: that is forbidden."""
    for _ in range(1200):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never true: {expression}")


def choose(page, preset: str) -> None:
    page.select_option("select[aria-label=Preset]", preset)
    until(
        page,
        "name => mercerStudio.app.state.data.preset === name && mercerStudio.app.state.data.X.length > 0"
        " && !!mercerStudio.app.answer.fit",
        preset,
    )


def count(page) -> int:
    return page.evaluate("mercerStudio.app.state.data.y.length")


def wait_for_points(page, number: int) -> None:
    until(page, "n => mercerStudio.app.state.data.y.length === n", number)


def settled(page) -> None:
    """Until no question is waiting, and the address is written."""
    until(page, "!mercerStudio.app.asker.quick.busy && !mercerStudio.app.asker.slow.busy")
    page.wait_for_timeout(250)


def picture(page, name: str, **more: object) -> None:
    if PICTURES:
        settled(page)
        page.screenshot(path=str(Path(PICTURES) / name), **more)


def spot(page, row: int) -> tuple[float, float]:
    """Where a point is on the screen."""
    x, y = page.evaluate(
        """row => {
            const main = mercerStudio.app.main, frame = main.frame, places = main.places();
            const box = main.canvas.getBoundingClientRect();
            return [box.left + frame.x(places[2 * row]), box.top + frame.y(places[2 * row + 1])];
        }""",
        row,
    )
    return x, y


# ── views ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_view_shows_its_picture(tab):
    page = tab()
    for view in VIEWS:
        page.click(f"[data-view={view}]")
        page.wait_for_selector(f".ms-panel[data-shown={view}]", timeout=60_000)
        settled(page)
        canvases = page.locator(".ms-panel canvas")
        for place in range(canvases.count()):
            drawn = canvases.nth(place).evaluate(
                "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
                ".buffer)).size"
            )
            assert drawn > 3, f"a picture of {view} is empty"
    page.click("[data-view=data]")
    assert page.locator(".ms-table tbody tr").count() == 12


def test_presets_of_every_kind_are_drawn(tab):
    page = tab()
    page.click("[data-view=why]")
    for preset in ("sinc", "co2", "xor", "digits", "strings", "graphs"):
        choose(page, preset)
        settled(page)
        assert page.evaluate("mercerStudio.app.answer.problem") is None
        assert page.locator(".ms-terms li").count() > 3, preset


def test_the_pictures_of_the_documents(tab):
    page = tab()
    picture(page, "studio_plane.png")
    page.click("[data-view=gram]")
    page.wait_for_selector(".ms-panel[data-shown=gram]", timeout=60_000)
    picture(page, "studio_gram.png", clip={"x": 286, "y": 48, "width": 914, "height": 732})
    choose(page, "co2")
    page.click("[data-view=choice]")
    page.wait_for_selector(".ms-panel[data-shown=choice]", timeout=60_000)
    picture(page, "studio_curve.png")
    dark = tab(scheme="dark")
    dark.fill("textarea.ms-kernel", "Sigmoid(1.0)")
    dark.wait_for_selector(".ms-badge.ms-refuted", timeout=60_000)
    picture(dark, "studio_witness.png")
    small = tab(360, 740)
    picture(small, "studio_phone.png")
    assert dark.evaluate("document.querySelector('.mercer-studio').classList.contains('ms-dark')")


# ── hands ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_click_adds_a_drag_moves_delete_removes_and_undo_brings_back(tab):
    page = tab()
    box = page.locator(".ms-canvas").bounding_box()
    page.keyboard.press("2")
    page.mouse.click(box["x"] + 100, box["y"] + 40)
    wait_for_points(page, 121)
    assert page.evaluate("mercerStudio.app.state.data.y.at(-1)") == 1
    x, y = spot(page, 120)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 60, steps=6)
    page.mouse.up()
    settled(page)
    moved = page.evaluate("mercerStudio.app.state.data.X.at(-1)")
    now = spot(page, 120)
    assert abs(now[0] - x - 40) < 2 and abs(now[1] - y - 60) < 2
    page.mouse.click(*now)
    page.keyboard.press("Delete")
    wait_for_points(page, 120)
    page.keyboard.press("Control+z")
    wait_for_points(page, 121)
    assert page.evaluate("mercerStudio.app.state.data.X.at(-1)") == moved
    page.keyboard.press("Control+y")
    wait_for_points(page, 120)


def test_a_brush_selects_and_the_selection_is_deleted(tab):
    page = tab()
    box = page.locator(".ms-canvas").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 50, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    chosen = page.evaluate("mercerStudio.app.selected.size")
    assert 0 < chosen < 120
    page.keyboard.press("Delete")
    wait_for_points(page, 120 - chosen)


def test_a_slider_turns_a_number_of_the_kernel_and_the_text_follows(tab):
    page = tab()
    page.fill("input[aria-label=lengthscale]", "1.25")
    page.press("input[aria-label=lengthscale]", "Enter")
    until(page, "mercerStudio.app.state.first.kernel === 'RBF(1.25)'")
    assert page.input_value("textarea.ms-kernel") == "RBF(1.25)"
    page.focus("input[aria-label='lengthscale, slider']")
    page.keyboard.press("ArrowRight")
    until(page, "mercerStudio.app.state.first.kernel !== 'RBF(1.25)'")
    assert float(re.findall(r"RBF\((.*)\)", page.input_value("textarea.ms-kernel"))[0]) > 1.25


def test_a_step_of_the_algorithm_can_be_taken_and_played(tab):
    page = tab()
    choose(page, "xor")
    page.click("[data-view=certificate]")
    page.wait_for_selector(".ms-player", timeout=60_000)
    page.click("[aria-label='First step']")
    assert "working set 1 of" in page.inner_text(".ms-panel")
    page.click("[aria-label='One step on']")
    assert "working set 2 of" in page.inner_text(".ms-panel")
    page.click(".ms-play")
    until(page, "!document.querySelector('.ms-panel').innerText.includes('working set 2 of')")


def test_the_keyboard_alone_suffices(tab):
    """From the address bar to a moved, removed and restored point and another view, without a mouse."""
    page = tab()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('ms-canvas')"):
            break
    assert page.evaluate("document.activeElement.classList.contains('ms-canvas')")
    page.keyboard.press("2")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    wait_for_points(page, 121)
    page.keyboard.press("p")
    until(page, "mercerStudio.app.state.view.chosen === 120")
    before = page.evaluate("mercerStudio.app.state.data.X[120]")
    page.keyboard.press("Shift+ArrowRight")
    until(page, "x => mercerStudio.app.state.data.X[120][0] > x", before[0])
    page.keyboard.press("Delete")
    wait_for_points(page, 120)
    page.keyboard.press("Control+z")
    wait_for_points(page, 121)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role') === 'tab'"):
            break
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".ms-panel[data-shown=gram]", timeout=60_000)


# ── the address, and what is taken away ─────────────────────────────────────────────────────────────────────


def test_the_address_holds_the_whole_state(tab):
    page = tab()
    choose(page, "rings")
    page.fill("textarea.ms-kernel", "RBF(0.7) + 0.1*Linear()")
    until(page, "mercerStudio.app.answer.kernel.text === 'RBF(0.7) + 0.1*Linear()'")
    box = page.locator(".ms-canvas").bounding_box()
    page.mouse.click(box["x"] + 90, box["y"] + 60)
    wait_for_points(page, 121)
    page.click("[data-view=gram]")
    settled(page)
    hash = page.evaluate("location.hash")
    kept = page.evaluate("JSON.parse(JSON.stringify(mercerStudio.app.state))")
    again = tab(hash=hash)
    settled(again)
    assert again.evaluate("JSON.parse(JSON.stringify(mercerStudio.app.state))") == kept


def test_copied_python_gives_the_values_of_the_picture(tab):
    page = tab()
    page.click(".ms-menu summary")
    page.click("[data-take=python]")
    until(page, "document.querySelector('.ms-toast').textContent.includes('Python copied')")
    program = page.evaluate("navigator.clipboard.readText()")
    names: dict = {}
    exec(compile(program, "copied", "exec"), names)
    state = State.read({"data": {"preset": "moons"}, "first": {"kernel": PRESETS["moons"].kernel}})
    expected = Fitted.of(state.points, state.first).values(state.points.X)
    assert np.abs(names["model"].decision_function(state.points.X) - expected).max() <= 1e-12


def test_files_are_downloaded(tab):
    page = tab()
    for what, name, begins in (
        ("model", "model.mercer", b""),
        ("svg", "picture.svg", b"<svg"),
        ("png", "picture.png", b"\x89PNG"),
        ("data", "points.csv", b"x1,x2,class"),
        ("report", "report.html", b"<!"),
    ):
        page.click(".ms-menu summary")
        with page.expect_download(timeout=60_000) as waiting:
            page.click(f"[data-take={what}]")
        assert waiting.value.suggested_filename == name
        content = Path(waiting.value.path()).read_bytes()
        assert content.startswith(begins) and len(content) > 500


# ── safety, small screens, speed ────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_shown_has_a_friendly_state(tab):
    page = tab()
    page.fill("textarea.ms-kernel", "RBF(1.0) +")
    until(page, "document.querySelector('.ms-wrong').textContent.includes('expected a kernel')")
    page.fill("textarea.ms-kernel", "RBF(1.0)")
    until(page, "mercerStudio.app.answer.kernel?.text === 'RBF(1.0)'")
    page.click("text=Clear")
    until(page, "document.querySelector('.ms-empty').textContent.includes('no points yet')")
    box = page.locator(".ms-canvas").bounding_box()
    for shift in (80, 120, 160):
        page.mouse.click(box["x"] + shift, box["y"] + 90)
    until(page, "document.querySelector('.ms-empty').textContent.includes('All points are of class')")
    page.click("[data-view=data]")
    page.set_input_files(
        "input[type=file]", {"name": "bad.csv", "mimeType": "text/csv", "buffer": b"name\nx\n"}
    )
    until(page, "document.querySelector('.ms-panel .ms-wrong')?.textContent.includes('bad.csv')")
    good = b"size,weight,kind\n1,2,oak\n2,1,elm\n3,5,oak\n4,2,elm\n"
    page.set_input_files("input[type=file]", {"name": "trees.csv", "mimeType": "text/csv", "buffer": good})
    wait_for_points(page, 4)
    page.wait_for_selector("[data-column=kind]")


def test_at_360_pixels_nothing_is_wider_than_the_screen(tab):
    page = tab(360, 740)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for view in ("gram", "why", "data"):
        page.click(f"[data-view={view}]")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view


def test_speed_is_measured_and_printed(tab):
    page = tab(wait=False)
    until(page, "window.mercerStudio && mercerStudio.latencies.length > 0")
    first = page.evaluate("performance.now()")
    choose(page, "moons500")
    settled(page)
    page.click("[data-view=data]")
    page.evaluate("mercerStudio.latencies.length = 0")
    x, y = spot(page, 7)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(80):
        page.mouse.move(x + step, y + 20 * np.sin(step / 6))
    page.mouse.up()
    settled(page)
    found = page.evaluate("mercerStudio.latencies.map(l => [l.ms, l.server])")
    waits = [wait for wait, _ in found[:-1]]
    server = [ms for _, ms in found[:-1]]
    assert len(waits) > 5
    median = statistics.median(waits)
    print(f"\nfirst picture after {first:.0f} ms; a drag among 500 points: median {median:.0f} ms,")
    print(f"of which the server takes {statistics.median(server):.0f} ms; {len(waits)} pictures of 80 moves")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


AS_A_NOTEBOOK = """async (source) => {
    const place = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
    const widget = (await import(place)).default;
    const heard = [];
    const model = {
        send: async (message) => {
            for (const one of await window.ask(message)) heard.forEach((call) => call(one));
        },
        on: (event, call) => { if (event === "msg:custom") heard.push(call); },
    };
    widget.render({model, el: document.getElementById("cell")});
}"""


def test_the_widget_of_a_notebook_shows_what_python_has(chromium):
    """A page does what anywidget does: it imports the bundle and renders it, with a comm to Python."""
    widgets = pytest.importorskip("mercer.studio.widget", reason="anywidget is not installed")
    widget = widgets.StudioWidget()
    said = []
    widget.send = said.append

    def ask(message):
        said.clear()
        widget._heard(widget, message, [])
        return json.loads(json.dumps(said))

    page = chromium.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.expose_function("ask", ask)
    page.set_content("<div id='cell'></div>")
    page.add_style_tag(content=(widgets.STATIC / "studio.css").read_text())
    page.evaluate(AS_A_NOTEBOOK, (widgets.STATIC / "studio.js").read_text())
    page.get_by_text(re.compile("support vectors, ")).first.wait_for(timeout=30_000)
    model = widget.model
    shown = page.locator("#cell").inner_text()
    assert f"{len(model.support_)} support vectors" in shown
    assert not wrong
    page.close()
