"""How the page of `devsan view --html` is used by keys, read aloud and printed, in a real browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from browser import chromium, visit  # noqa: F401 (fixture)
from pages import pages  # noqa: F401 (fixture)
from test_page import PROGRAM


@pytest.fixture(scope="module")
def page(pages):
    """The page of a run with errors, notes, and findings that are suppressed."""
    file, _ = pages.of(PROGRAM)
    return file


def title(visited):
    return visited.page.locator("#finding-title")


@pytest.mark.parametrize("way", ["keys", "mouse"])
def test_whoever_chooses_a_finding_is_led_to_its_title(page, chromium, way):
    with visit(chromium, page, "#notes=1", width=400) as visited:
        shown = title(visited).inner_text()
        if way == "keys":
            visited.page.keyboard.press("j")
        else:
            visited.page.locator("nav.list a:not([aria-current])").first.click()
        expect(title(visited)).not_to_have_text(shown)
        expect(title(visited)).to_be_focused()
        expect(title(visited)).to_be_in_viewport()


def test_keys_lead_back_to_the_finding_that_failed_first(page, chromium):
    with visit(chromium, page, "#notes=1") as visited:
        for key in ("j", "k", "f"):
            visited.page.keyboard.press(key)
            expect(title(visited)).to_be_focused()
        visited.page.get_by_label("Search").focus()
        visited.page.keyboard.press("Escape")
        visited.page.keyboard.press("f")
        expect(title(visited)).to_be_focused()


def test_a_filter_keeps_the_focus_where_somebody_types(page, chromium):
    with visit(chromium, page, "#notes=1") as visited:
        shown = title(visited).inner_text()
        visited.page.get_by_label("Search").focus()
        visited.page.keyboard.type("index")
        expect(title(visited)).not_to_have_text(shown)
        expect(visited.page.get_by_label("Search")).to_be_focused()


def test_keys_work_on_after_a_box_was_ticked(page, chromium):
    with visit(chromium, page) as visited:
        visited.page.get_by_role("checkbox", name="notes").check()
        visited.page.keyboard.press("2")
        expect(visited.page.get_by_role("heading", name="Steps and memory over time")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_findings_that_are_suppressed(page, chromium, scheme):
    with visit(chromium, page, "#notes=1&suppressed=1", color_scheme=scheme) as visited:
        suppressed = visited.page.locator("nav.list a.suppressed")
        assert "suppressed" in suppressed.first.inner_text()
        suppressed.first.click()
        visited.page.wait_for_timeout(100)
        found = Axe().run(visited.page).response["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


# Printing takes the page as it is at once, while the script that asks for it runs.
PRINT = """() => { window.print = () => {
  window.dispatchEvent(new Event("beforeprint"));
  window.printed = document.querySelector("main").textContent;
} }"""


def test_the_button_prints_a_table_of_the_findings(page, chromium):
    with visit(chromium, page) as visited:
        visited.page.evaluate(PRINT)
        visited.page.get_by_role("button", name="Print").click()
        visited.page.wait_for_function("window.printed")
        assert "All findings that the filter shows" in visited.page.evaluate("window.printed")
        visited.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        expect(visited.page.get_by_text("All findings that the filter shows")).to_have_count(0)


def test_paper_has_the_whole_of_a_long_message(page, chromium):
    with visit(chromium, page) as visited:
        visited.page.evaluate("document.querySelector('.message').append('\\nline'.repeat(60))")
        cut = "(() => { const one = document.querySelector('.message'); return one.scrollHeight - one.clientHeight })()"
        assert visited.page.evaluate(cut) > 0
        visited.page.emulate_media(media="print")
        assert visited.page.evaluate(cut) == 0
