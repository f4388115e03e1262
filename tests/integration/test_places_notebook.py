"""Cells of a notebook, and what is typed at IPython's prompt: their places are the cells' numbers and lines."""

import subprocess

import pytest

from places import Place

FIRST = "import torch\nnet = torch.nn.Linear(4, 4).to('cuda')"
LEFT = "# what stays behind\nx = torch.ones(2, 4)"
MEETS = "if x.dim():\n    y = net(x)"
ALLOWED = "z = net(x.to('cuda'))\nprint(z.shape)"

RUN = """
import sys
import nbclient, nbformat

notebook = nbformat.v4.new_notebook()
notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
nbclient.NotebookClient(notebook, allow_errors=True, timeout=240).execute()
for cell in notebook.cells:
    for output in cell.outputs:
        print(output.get("text", output.get("ename", "")).strip())
"""


@pytest.fixture
def place(devsan, python, tmp_path):
    return Place(devsan, python, tmp_path)


def check_cells(place):
    report = place.report
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    assert len(loud) == 1 and report["damage"] == [], [(f["kind"], f["where"]) for f in loud]
    [found] = loud
    where, root = found["where"], found["root_cause"]
    assert (where["file"], where["line"], where["function"]) == ("In [3]", 2, "<module>")
    assert where["source"].strip() == "y = net(x)"
    assert root and (root["file"], root["line"], root["operand"]) == ("In [2]", 2, "x"), root
    notes = [f["where"] for f in report["findings"] if f["severity"] == "note"]
    assert {where["file"] for where in notes} == {"In [1]"} and all(where["source"] for where in notes), notes
    text = subprocess.run([place.devsan, "view", place.out], capture_output=True, text=True, check=True).stdout
    assert "cause at In [2]:2" in text and "x = torch.ones(2, 4)" in text, text


def test_cells_of_a_notebook(place):
    place.needs("nbclient", "nbformat", "ipykernel")
    main = place.file("main.py", RUN.replace("CELLS", repr([FIRST, LEFT, MEETS, ALLOWED])))
    place.run(place.python, main)
    assert (place.status, place.stdout) == (0, "RuntimeError\ntorch.Size([2, 4])\n"), place.stderr
    check_cells(place)


def test_at_the_prompt_of_ipython(place):
    place.needs("IPython")
    cells = "\n".join([FIRST.replace("\n", "; "), "x = torch.ones(2, 4)", "y = net(x)", ALLOWED.replace("\n", "; ")])
    place.run(place.python, "-m", "IPython", "--simple-prompt", "--no-banner", "--HistoryManager.enabled=False",
              "--no-confirm-exit", stdin=cells + "\n")
    assert place.status == 0 and "torch.Size([2, 4])" in place.stdout, place.stderr
    [found] = place.raised()
    assert (found["where"]["file"], found["where"]["line"]) == ("In [3]", 1)
    assert found["root_cause"] and found["root_cause"]["file"] == "In [2]"
