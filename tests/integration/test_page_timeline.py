"""The timeline of the page of `devsan view --html`, of real runs, in a real browser."""

import pytest
from playwright.sync_api import expect

from browser import chromium, visit  # noqa: F401 (fixture)
from harness import timeline
from pages import pages  # noqa: F401 (fixture)

TIMELINE = "#view=timeline"
MILLISECOND = 1000  # the page counts microseconds
ROW = 24  # pixels that few ranks have each
TOP = 6
NAMES = 76

# The error is seen while the first forward is going on.
FIRST_FORWARD = """
    import time, torch
    model = torch.nn.Linear(4, 4).to("cuda")
    result = model(torch.ones(2, 4, device="cuda"))
    time.sleep(0.05)
    result + torch.ones(2, 4)
"""

# Three ranks with the same mistake, which the last one comes to first.
RANKS = """
    import os, pathlib, subprocess, sys, time

    if "RANK" not in os.environ:
        environments = [{**os.environ, "RANK": str(rank), "WORLD_SIZE": "3"} for rank in range(3)]
        ranks = [subprocess.Popen([sys.executable, *sys.argv], env=environment) for environment in environments]
        sys.exit(max(rank.wait() for rank in ranks))

    import torch
    told = pathlib.Path(sys.argv[1])
    model = torch.nn.Linear(4, 4, device="cuda")
    for step in range(4):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
        time.sleep(0.02)

    if os.environ["RANK"] != "2":
        while not told.exists():
            time.sleep(0.02)
    try:
        torch.ones(2, device="cuda") + torch.ones(2)
    finally:
        told.touch()
"""

# Where the chart of ranks has the color of errors, in pixels.
MARKS = """() => {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.style.color = "var(--error)";
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const canvas = document.querySelector(".ranks canvas");
  const {data, width} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = [];
  for (let i = 0; i < data.length; i += 4) {
    if ([0, 1, 2].every(part => data[i + part] === wanted[part])) found.push([(i / 4) % width, Math.floor(i / 4 / width)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def ranks(pages, tmp_path_factory):
    file, _ = pages.of(RANKS, tmp_path_factory.mktemp("told") / "told", name="ranks.html", timeout=180)
    return file


def marks(visited):
    visited.page.locator(".ranks canvas").first.wait_for()
    return visited.page.evaluate(MARKS)


def shown(visited):
    return visited.text(".zoom output")


def seconds_at_end(text):
    """The number, and how many digits of it are told."""
    number = text.split(" to ")[1].removesuffix(" s")
    return float(number), len(number.partition(".")[2])


def drawing(visited, selector):
    return visited.page.evaluate("selector => document.querySelector(selector).toDataURL()", selector)


def test_a_failure_in_the_first_forward_is_in_the_chart(pages, chromium):
    file, _ = pages.of(FIRST_FORWARD, name="forward.html")
    assert timeline(file)["forward"] >= [50 * MILLISECOND]
    with visit(chromium, file, TIMELINE) as visited:
        assert marks(visited)
        assert "0 s to 1 s" not in shown(visited)


def test_every_rank_that_had_an_error_has_a_mark_and_the_first_one_is_chosen(ranks, chromium):
    with visit(chromium, ranks, TIMELINE) as visited:
        assert {(y - TOP) // ROW for _, y in marks(visited)} == {0, 1, 2}
        assert "rank 2" in visited.text(".choice option:checked")
    for view in ("#view=memory", "#view=operators"):
        with visit(chromium, ranks, view) as visited:
            visited.page.locator(".choice").first.wait_for()
            assert "rank 2" in visited.text(".choice option:checked"), view


def drag(visited, begin, end):
    mouse = visited.page.mouse
    mouse.move(*begin)
    mouse.down()
    mouse.move(*end, steps=4)
    mouse.up()


def test_a_drag_that_ends_outside_the_chart_zooms_and_is_over(ranks, chromium):
    with visit(chromium, ranks, TIMELINE) as visited:
        whole = shown(visited)
        box = visited.page.locator(".ranks canvas").first.bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        drag(visited, middle, (box["x"] + box["width"] + 5, box["y"] - 40))
        expect(visited.page.locator(".zoom output")).not_to_have_text(whole)
        zoomed = shown(visited)
        visited.page.mouse.move(*middle, steps=4)
        expect(visited.page.locator(".marked")).to_have_count(0)
        assert shown(visited) == zoomed
        # A part may be told with more digits than the whole.
        end, digits = seconds_at_end(whole)
        assert seconds_at_end(zoomed)[0] == pytest.approx(end, abs=10**-digits)


def test_a_drag_over_the_names_changes_nothing(ranks, chromium):
    with visit(chromium, ranks, TIMELINE) as visited:
        whole = shown(visited)
        box = visited.page.locator(".ranks canvas").first.bounding_box()
        drag(visited, (box["x"] + 10, box["y"] + 20), (box["x"] + NAMES - 10, box["y"] + 20))
        visited.page.wait_for_timeout(50)
        assert shown(visited) == whole


def test_curves_of_memory_stay_zoomed_when_the_colors_change_and_a_double_click_shows_all(ranks, chromium):
    with visit(chromium, ranks, TIMELINE) as visited:
        chart = ".chart canvas"
        visited.page.locator(chart).first.wait_for()
        whole, all_of_it = shown(visited), drawing(visited, chart)
        visited.page.get_by_role("button", name="Zoom in").click()
        visited.page.wait_for_timeout(100)
        zoomed = drawing(visited, chart)
        assert zoomed != all_of_it
        for theme in ("light", "dark", "system"):
            visited.page.keyboard.press("t")
            visited.page.wait_for_selector(f"html[data-theme={theme}]")
        visited.page.wait_for_timeout(100)
        assert drawing(visited, chart) == zoomed
        visited.page.locator(".chart .u-over").first.dblclick()
        expect(visited.page.locator(".zoom output")).to_have_text(whole)
        visited.page.wait_for_timeout(100)
        assert drawing(visited, chart) == all_of_it


@pytest.mark.parametrize("chart", [".ranks canvas", ".ranks .axis", ".chart canvas"])
def test_charts_turn_dark_with_the_system(ranks, chromium, chart):
    with visit(chromium, ranks, TIMELINE, color_scheme="light") as visited:
        visited.page.locator(chart).first.wait_for()
        light = drawing(visited, chart)
        visited.page.emulate_media(color_scheme="dark")
        visited.page.wait_for_timeout(200)
        dark = drawing(visited, chart)
        assert dark != light
        visited.page.reload()
        visited.page.locator(chart).first.wait_for()
        visited.page.wait_for_timeout(200)
        assert drawing(visited, chart) == dark


def test_charts_are_printed_in_the_colors_of_paper(ranks, chromium):
    with visit(chromium, ranks, TIMELINE, color_scheme="light") as visited:
        visited.page.locator(".ranks canvas").first.wait_for()
        light = drawing(visited, ".ranks .axis")
    with visit(chromium, ranks, TIMELINE, color_scheme="dark") as visited:
        visited.page.locator(".ranks canvas").first.wait_for()
        visited.page.evaluate("window.print = () => { window.printed = document.querySelector('.ranks .axis').toDataURL() }")
        visited.page.get_by_role("button", name="Print").click()
        visited.page.wait_for_function("window.printed")
        assert visited.page.evaluate("window.printed") == light
        visited.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        visited.page.wait_for_timeout(100)
        assert drawing(visited, ".ranks .axis") != light
