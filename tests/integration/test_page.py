"""The page of `devsan view --html`, of real runs, in a real browser."""

import json
import re
import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from browser import chromium, visit  # noqa: F401 (fixture)
from harness import ROOT, timeline
from pages import pages  # noqa: F401 (fixture)

VIEWS = ["", "#view=timeline", "#view=memory", "#view=operators", "#view=run"]
DATA = re.compile(r'<script type="application/json" data-part.*?</script>\n', re.S)

# An error with a patch, a note, and what a suppression hides.
PROGRAM = """
    import torch
    from torch import nn
    import devsan

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(16, 4)
            self.scale = torch.ones(4)

        def forward(self, x):
            return self.proj(x) * self.scale

    def accumulate(total, ids):
        return total[ids]

    model = nn.Linear(4, 4).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        loss = model(torch.ones(2, 4, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
    accumulate(torch.ones(3, device="cuda"), torch.tensor([0, 1]))
    with devsan.allow("mixed-operands"):
        accumulate(torch.ones(2, device="cuda"), torch.tensor([1]))
    try:
        torch.ones(2, device="cuda") + torch.ones(2)
    except RuntimeError:
        pass
    head = Head().to("cuda")
    print(head(torch.randn(8, 16, device="cuda")).sum())
"""

# Names that would be markup, and a script's end, if a page took them for that.
HOSTILE = """
    import torch
    bag = {"</script><script>document.title='taken'</script>": torch.ones(2), "x": torch.ones(2, device="cuda")}
    print(bag["x"] + bag["</script><script>document.title='taken'</script>"])  # <img src=x onerror="document.title='taken'">
"""


# Each phase lasts 30 ms at least: time that a program sleeps can only become more.
PHASES = """
    import os, signal, sys, time, torch

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            time.sleep(0.03)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            time.sleep(0.03)
            if step == 3 and sys.argv[1:] == ["killed"]:
                os.kill(os.getpid(), signal.SIGKILL)
            return gradient * 2

    model = torch.nn.Linear(4, 4, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(4):
        Slow.apply(model(torch.ones(2, 4, device="cuda"))).sum().backward()
        time.sleep(0.03)
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.03)
"""


@pytest.fixture(scope="module")
def run(pages):
    """The page of PROGRAM, and the run."""
    return pages.of(PROGRAM)


def raised(result):
    return next(one for one in result.findings if one["severity"] == "error")


def rows(visited):
    return visited.page.locator("nav.list li").count()


def test_the_page_is_the_one_in_the_repository_with_data_in_it(run):
    file, _ = run
    page, count = DATA.subn("", file.read_text())
    assert count >= 3
    assert page == (ROOT / "viewer/dist/report.html").read_text().replace("<!--devsan:data-->", "")


def test_it_opens_from_disk_and_asks_for_nothing_else(run, chromium):
    file, _ = run
    with visit(chromium, file) as visited:
        for view in VIEWS:
            visited.page.evaluate("hash => { location.hash = hash }", view)
            visited.page.wait_for_timeout(50)
        assert visited.requests == [file.resolve().as_uri()]
        assert visited.complaints == []


def test_first_comes_what_failed_with_the_line_to_change(run, chromium):
    file, result = run
    error = raised(result)
    with visit(chromium, file) as visited:
        first = visited.text("section.first")
        assert f"step {error['step']}" in first
        assert f":{error['root_cause']['line']}" in first
        assert error["fix"]["text"].replace("`", "") in first


def test_the_line_that_failed_has_its_operands_marked_with_their_devices(run, chromium):
    file, _ = run
    with visit(chromium, file) as visited:
        where = visited.page.locator("section[aria-labelledby=where-title]")
        assert where.locator("tr.here").inner_text().split("\t")[1].strip() == "return self.proj(x) * self.scale"
        assert "".join(where.locator(".mark.odd").all_inner_texts()) == "self.scale"
        assert where.locator(".label.odd").all_inner_texts() == ["cpu"]
        assert where.locator(".label:not(.odd)").all_inner_texts() == ["cuda:0"]


@pytest.mark.parametrize("way", ["button", "key"])
def test_the_patch_is_copied_as_the_report_has_it(run, chromium, way):
    file, result = run
    (patch,) = raised(result)["fix"]["patches"]
    with visit(chromium, file) as visited:
        added = visited.page.locator("figure.diff").first.locator("tr.add")
        assert "register_buffer" in added.inner_text()
        if way == "button":
            visited.page.get_by_role("button", name="Copy patch").first.click()
        else:
            visited.page.keyboard.press("c")
        visited.page.get_by_text("Copied").wait_for()
        assert visited.page.evaluate("navigator.clipboard.readText()") == patch["diff"]


def test_an_operand_shows_its_way_over_devices_with_the_lines(run, chromium):
    file, _ = run
    with visit(chromium, file) as visited:
        moved = visited.page.locator("details.operand:not(.odd)").first
        moved.locator("summary").first.click()
        assert moved.locator(".devices .device").all_inner_texts() == ["cpu", "cuda:0"]
        assert re.search(r"moved.*program1\.py:\d+", moved.locator("ol.path").inner_text(), re.S)


def test_filters_narrow_the_list_and_stand_in_the_address(run, chromium):
    file, result = run
    loud = [one for one in result.findings if one["severity"] != "note"]
    with visit(chromium, file) as visited:
        assert rows(visited) == len(loud)
        visited.page.get_by_role("checkbox", name="notes").check()
        assert rows(visited) == len(result.findings)
        visited.page.get_by_label("Kind").select_option("device-mismatch")
        mismatches = [one for one in result.findings if one["kind"] == "device-mismatch"]
        assert rows(visited) == len(mismatches) >= 2
        visited.page.get_by_label("Search").fill("register MUL")
        assert rows(visited) == 0
        visited.page.get_by_label("Search").fill("MUL scale")
        assert rows(visited) == 1
        address = visited.hash()
        assert "kind=device-mismatch" in address and "text=MUL" in address
    with visit(chromium, file, address) as visited:
        assert rows(visited) == 1


def test_what_is_suppressed_shows_when_asked_for(run, chromium):
    file, result = run
    with visit(chromium, file) as visited:
        assert visited.page.get_by_role("checkbox", name="suppressed").count() == 1
        visited.page.get_by_role("checkbox", name="suppressed").check()
        visited.page.get_by_label("Kind").select_option("mixed-operands")
        visited.page.locator("nav.list a.suppressed").first.click()
        assert "The program allows it (devsan.allow)." in visited.text("article.finding")
    assert any(one["kind"] == "mixed-operands" for one in result.report["suppressed"])


def test_a_link_to_a_finding_opens_it_even_one_that_the_filter_hides(run, chromium):
    file, result = run
    note = next(one for one in result.findings if one["severity"] == "note")
    with visit(chromium, file, f"#finding={note['id']}") as visited:
        assert note["kind"] in visited.text("article.finding .kind")
        visited.page.reload()
        visited.page.wait_for_selector("main")
        assert note["kind"] in visited.text("article.finding .kind")


def test_everything_can_be_reached_by_keys(run, chromium):
    file, _ = run
    with visit(chromium, file) as visited:
        press = visited.page.keyboard.press
        kind = visited.page.locator("article.finding .kind").first
        visited.page.keyboard.type("n")
        before = visited.text("article.finding .kind")
        press("j")
        expect(kind).not_to_have_text(before, use_inner_text=True)
        press("k")
        expect(kind).to_have_text(before, use_inner_text=True)
        press("/")
        visited.page.keyboard.type("n2")
        assert visited.page.get_by_label("Search").input_value() == "n2"
        press("Escape")
        press("2")
        expect(visited.page.get_by_role("heading", name="Steps and memory over time")).to_be_visible()
        press("?")
        expect(visited.page.get_by_role("dialog")).to_be_visible()
        press("Escape")
        expect(visited.page.get_by_role("dialog")).to_have_count(0)


def background(visited):
    return visited.page.evaluate("getComputedStyle(document.body).backgroundColor")


def themed(visited, theme):
    """The background once the page has that theme."""
    visited.page.wait_for_selector(f"html[data-theme={theme}]")
    return background(visited)


def test_colors_follow_the_system_and_the_switch_which_is_remembered(run, chromium):
    file, _ = run
    with visit(chromium, file, color_scheme="light") as visited:
        light = background(visited)
    with visit(chromium, file, color_scheme="dark") as visited:
        dark = background(visited)
        assert dark != light
        visited.page.keyboard.press("t")
        assert themed(visited, "light") == light
        visited.page.reload()
        assert themed(visited, "light") == light
        visited.page.keyboard.press("t")
        assert themed(visited, "dark") == dark


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(run, chromium, width):
    file, _ = run
    for view in VIEWS:
        with visit(chromium, file, view, width=width) as visited:
            visited.page.wait_for_timeout(100)
            visited.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            assert visited.wide() == 0, view


def test_paper_has_the_finding_and_a_table_of_all_in_place_of_the_list(run, chromium):
    file, _ = run
    with visit(chromium, file) as visited:
        visited.page.emulate_media(media="print", color_scheme="dark")
        visited.page.get_by_text("All findings that the filter shows").wait_for()
        assert not visited.page.locator("nav.list").is_visible()
        assert visited.page.locator("figure.diff tr.add").first.is_visible()
        assert background(visited) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(run, chromium, scheme):
    axe = Axe()
    file, _ = run
    for view in VIEWS:
        with visit(chromium, file, view, color_scheme=scheme) as visited:
            visited.page.wait_for_timeout(100)
            found = axe.run(visited.page).response["violations"]
            serious = {one["id"]: [node["html"] for node in one["nodes"]][:3]
                       for one in found if one["impact"] in ("serious", "critical")}
            assert serious == {}, view


def test_the_last_operators_and_the_run_are_there(run, chromium):
    file, result = run
    with visit(chromium, file, "#view=operators") as visited:
        visited.page.locator("table.data").first.wait_for()
        assert "aten::mul.Tensor" in visited.page.locator("table.data tbody tr").first.inner_text()
    with visit(chromium, file, "#view=run") as visited:
        text = visited.text("main")
        assert result.report["run"]["versions"]["torch"] in text
        assert result.report["run"]["command"] in text
        assert "All traces were read whole" in text


WORKER = ROOT / "tests/integration/collective_programs/worker.py"


def test_of_several_ranks_it_says_who_failed_first_and_where_the_others_waited(pages, chromium, tmp_path):
    command = [pages.devsan, "run", "--out", tmp_path / "out", "--", pages.run.python, "-m", "torch.distributed.run",
               "--standalone", "--nproc-per-node=3", WORKER, "raised", "cpu"]
    subprocess.run(command, env=pages.run.environment({"OMP_NUM_THREADS": "1"}), cwd=tmp_path, capture_output=True, check=False, timeout=300)
    file = tmp_path / "report.html"
    done = subprocess.run([pages.devsan, "view", tmp_path / "out", "--html", file, "--json"], capture_output=True, text=True,
                          check=True, timeout=60)
    first = json.loads(done.stdout)["run"]["first_failure"]
    with visit(chromium, file) as visited:
        told = visited.page.locator("section.first")
        assert f"Rank {first['rank']} failed first" in told.inner_text()
        told.get_by_text("What the other ranks waited in").click()
        rows = told.locator("table.data tbody tr").all_inner_texts()
        waiting = [turn["rank"] for turn in first["waiting"]["per_rank"] if turn["state"] == "waiting"]
        assert waiting and [int(row.split()[0]) for row in rows if "waits in it" in row] == waiting
    with visit(chromium, file, "#view=timeline") as visited:
        visited.page.get_by_text("The steps in numbers").click()
        assert first["waiting"]["name"] in visited.text("table.data")


MILLISECOND = 1000  # the page counts microseconds


def test_phases_of_a_step_have_the_time_that_they_took(pages, chromium):
    file, _ = pages.of(PHASES, name="phases.html")
    steps = timeline(file)
    assert steps["step"] == [0, 1, 2, 3] and steps["taken"] == 4
    for phase in ("forward", "backward", "between"):
        assert min(steps[phase]) >= 30 * MILLISECOND, phase
    assert min(steps["rest"][:-1]) >= 30 * MILLISECOND
    assert min(steps["optimizer"][:-1]) > 0
    with visit(chromium, file, "#view=timeline") as visited:
        visited.page.get_by_text("The steps in numbers").click()
        assert "pid" in visited.page.locator("table.data tbody tr").first.inner_text()
        whole = visited.text(".zoom output")
        visited.page.get_by_role("button", name="Zoom in").click()
        assert visited.text(".zoom output") != whole
        visited.page.locator(".ranks").focus()
        visited.page.keyboard.press("0")
        assert visited.text(".zoom output") == whole


LIVE = """
import torch
model = torch.nn.Linear(256, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    optimizer.zero_grad(set_to_none=False)
    model(torch.ones(1024, 256).cuda()).exp().sum().backward()
    optimizer.step()
"""


def test_what_was_live_at_the_peak_stands_in_tables_by_kind_and_line(pages, chromium):
    file, result = pages.of(LIVE, name="live.html")
    [peaks] = [process["peak_memory"] for process in result.report["run"]["processes"] if "peak_memory" in process]
    [peak] = [peak for peak in peaks if peak["device"] == "cuda:0"]
    with visit(chromium, file, "#view=memory") as visited:
        section = visited.page.get_by_label("Live memory of cuda:0 at its peak")
        kinds = section.get_by_role("table", name="Live memory of cuda:0 by kind").locator("tbody tr").all_inner_texts()
        assert [row.split("\t")[0].strip() for row in kinds] == [row["kind"] for row in peak["by_kind"]]
        assert {"parameters", "gradients", "optimizer state", "activations"} <= {row["kind"] for row in peak["by_kind"]}
        lines = section.get_by_role("table", name="Live memory of cuda:0 by line").locator("tbody tr")
        assert lines.count() == len(peak["by_place"])
        assert "aten::exp" in " ".join(lines.all_inner_texts())


def test_the_step_in_which_a_process_was_killed_is_there_as_far_as_it_came(pages):
    file, result = pages.of(PHASES, "killed", name="killed.html")
    assert result.status == 128 + 9
    steps = timeline(file)
    assert steps["step"] == [0, 1, 2, 3]
    assert steps["forward"][-1] >= 30 * MILLISECOND and steps["backward"][-1] == 0


def test_markup_in_names_sources_and_messages_is_text(pages, chromium):
    file, result = pages.of(HOSTILE, name="hostile.html")
    assert raised(result)
    with visit(chromium, file) as visited:
        visited.page.wait_for_timeout(100)
        assert "taken" not in visited.page.title()
        assert "document.title='taken'" in visited.text("article.finding")
        assert visited.page.locator("img").count() == 0


def test_damage_is_told(pages, chromium):
    result = pages.run(PROGRAM, sim=1)
    (trace,) = result.out.glob("*.devsan")
    (pages.folder / "broken").mkdir()
    (pages.folder / "broken" / trace.name).write_bytes(trace.read_bytes())
    (pages.folder / "broken" / "rank0.1.devsan").write_bytes(b"nothing of a trace")
    file = pages.folder / "broken.html"
    subprocess.run([pages.devsan, "view", pages.folder / "broken", "--html", file], check=True, timeout=60)
    with visit(chromium, file, "#view=run") as visited:
        assert "could not be read" in visited.text("header.top")
        assert "rank0.1.devsan" in visited.text("main")
