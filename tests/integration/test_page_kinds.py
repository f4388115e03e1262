"""What the page of `devsan view --html` shows of findings that have more than operands, in a real browser."""

import re
import subprocess
import textwrap

import pytest

from browser import chromium, visit  # noqa: F401 (fixture)
from harness import ROOT, view
from pages import pages  # noqa: F401 (fixture)
from test_attribute_writes import EXPERTS, LIBRARY, TRAIN
from test_out_of_memory import TRAINING

WORKER = ROOT / "tests/integration/collective_programs/worker.py"


def only(result, kind):
    [finding] = [one for one in result.findings if one["kind"] == kind]
    return finding


def table(visited, caption):
    """The texts of the cells, row by row."""
    rows = visited.page.get_by_role("table", name=caption, exact=True).first.locator("tbody tr")
    return [row.locator("td").all_inner_texts() for row in rows.all()]


@pytest.mark.parametrize("view", ["", "#view=memory"])
def test_of_a_full_device_it_shows_what_lived_though_no_line_made_some_of_it(pages, chromium, view):
    program = TRAINING.format(then="train(16 << 10)")
    file, result = pages.of(program, name="memory.html", options=["--sim-memory", "512M"])
    live = only(result, "out-of-memory")["live_memory"]
    assert None in [row["file"] for row in live["by_place"]]
    with visit(chromium, file, view) as visited:
        visited.page.get_by_role("table", name="By line", exact=True).wait_for()
        shown = table(visited, "By line")
        assert visited.complaints == []
    assert len(shown) == min(len(live["by_place"]), 40)
    for row, cells in zip(live["by_place"], shown, strict=False):
        assert (f":{row['line']}" in cells[-1]) == (row["file"] is not None)
        assert row["op"] in cells[-1]


def test_an_attribute_that_a_library_wrote_over_is_shown_with_its_writers(pages, chromium, tmp_path):
    library = tmp_path / "site-packages/numbering"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(textwrap.dedent(LIBRARY))
    source = EXPERTS + "    from numbering import number_modules\n" + TRAIN
    file, result = pages.of(source, name="writers.html", sim=2, env={"PYTHONPATH": str(library.parent)})
    finding = only(result, "attribute-overwritten")
    with visit(chromium, file, f"#finding={finding['id']}") as visited:
        shown = table(visited, f"Who wrote {finding['attribute']}")
        assert visited.complaints == []
    assert [row[:2] for row in shown] == [[one["when"], one["value"]] for one in finding["writers"]]
    for row, writer in zip(shown, finding["writers"], strict=True):
        assert f":{writer['line']}" in row[2] and row[3].strip() == writer["source"].strip()


def test_a_link_to_a_finding_that_the_report_lacks_says_so(pages, chromium):
    file, result = pages.of("import torch\ntorch.ones(2, device='cuda') + torch.ones(2)\n", name="link.html")
    said = "The finding that this link names is not in this report."
    finding = only(result, "device-mismatch")
    with visit(chromium, file, "#finding=0123456789ab") as visited:
        assert said in visited.text("main")
        visited.page.locator("nav.list a").first.click()
        visited.page.get_by_text(said).wait_for(state="hidden")
    with visit(chromium, file, f"#finding={finding['id']}") as visited:
        assert said not in visited.text("main")


def test_of_a_hang_the_stacks_of_missing_ranks_are_there_and_made_when_they_are_opened(pages, chromium, tmp_path):
    command = [pages.devsan, "run", "--quiet", "--hang-after", "1", "--out", tmp_path / "out", "--", pages.run.python, "-m",
               "torch.distributed.run", "--standalone", "--nproc-per-node=3", WORKER, "missing", "cpu"]
    subprocess.run(command, env=pages.run.environment({"OMP_NUM_THREADS": "1"}), cwd=tmp_path, capture_output=True, check=False,
                   timeout=300)
    file = tmp_path / "report.html"
    subprocess.run([pages.devsan, "view", tmp_path / "out", "--html", file], check=True, timeout=60)
    [hang] = [one for one in view(pages.devsan, tmp_path / "out")["findings"] if one["kind"] == "collective-hang"]
    turns = {one["rank"]: one for one in hang["collective"]["per_rank"]}
    assert turns[2]["state"] == "never_entered" and all("threads" in turn for turn in turns.values())
    with visit(chromium, file, f"#finding={hang['id']}") as visited:
        article = visited.page.locator("article.finding")
        titles = article.locator("details.stack > summary").filter(has_text="Rank ").all_inner_texts()
        assert {title.split(",")[0] for title in titles} == {"Rank 2"}
        assert article.locator("details.stack li").count() == 0
        threads = turns[2]["threads"]
        if len(threads) > 1:
            article.get_by_text("Rank 2, stacks of").click()
        article.get_by_text(f"Rank 2, {threads[0]['name']}").click()
        article.locator("details.stack li").get_by_text("in forget").wait_for()
        assert article.locator("details.stack li").count() == len(threads[0]["stack"])
        visited.page.get_by_text("What the other ranks waited in").click()
        assert "waits in it" in visited.text("section.first table.data")
        assert visited.complaints == []


# What the terminal says of them beside their headlines.
WORDS = """
    import torch
    model = torch.nn.Linear(64, 64).cuda()
    kept = []
    for step in range(40):
        loss = model(torch.ones(8, 64, device="cuda")).sum()
        loss.backward()
        kept.append(loss)
        loss.item()
"""


def test_a_finding_is_told_in_the_words_of_the_terminal(pages, chromium):
    file, result = pages.of(WORDS, name="words.html")
    terminal = subprocess.run([pages.devsan, "view", "--notes", result.out], capture_output=True, text=True, check=True, timeout=60)
    told = " ".join(terminal.stdout.split())
    growth = only(result, "memory-growth")
    copy = only(result, "implicit-transfer")
    outlook = re.search(rf"Since step {growth['growth']['since']}\..*? steps?\.", told)[0]
    cost = re.search(r"0\.05 times a step · .*? in all", told)[0]
    with visit(chromium, file, f"#finding={growth['id']}") as visited:
        assert f"What grows: kept[...], with its autograd graphs. {outlook}" in visited.text("article.finding")
    with visit(chromium, file, f"#finding={copy['id']}") as visited:
        text = visited.text("article.finding .circumstances")
        assert cost in text and f"first at step {copy['step']}" in text


def test_a_view_whose_data_cannot_be_read_says_so_and_the_others_remain(pages, chromium):
    file, _ = pages.of("import torch\ntorch.ones(2, device='cuda') + torch.ones(2)\n", name="torn.html")
    text = file.read_text()
    begin = text.index('data-part="operators">') + len('data-part="operators">')
    file.write_text(text[:begin] + text[begin + 1:])
    with visit(chromium, file, "#view=operators") as visited:
        visited.page.get_by_text("This view cannot be shown").wait_for()
        visited.page.get_by_role("link", name="Findings").click()
        assert visited.page.locator("article.finding").is_visible()
