"""What PyTorch lets pass between the host and simulated devices: which lines are warned of, which are only noted."""

import subprocess
import textwrap


def marked(source, result, kind, severity="warning"):
    """The marks (`# name`) of the lines that findings of a kind are at."""
    lines = textwrap.dedent(source).splitlines()
    places = [f["where"]["line"] for f in result.findings if f["kind"] == kind and f["severity"] == severity]
    return sorted({lines[line - 1].rpartition("# ")[2] for line in places})


RACES = """
    import numpy
    import torch

    device = torch.device("cuda", 0)
    source = torch.arange(16.0, device=device)

    def fetch():
        return source.to("cpu", non_blocking=True)

    total = fetch().numpy().sum()  # read at once
    host = fetch()
    scaled = host.numpy() * 2  # used in an expression
    kept = fetch()
    array = kept.numpy()  # read later
    shape = array.shape
    torch.cuda.synchronize()
    total += array.sum()
    view = fetch()
    first = view.numpy().reshape(4, 4)  # only a view
    torch.cuda.current_stream().synchronize()
    total += first[0, 0]
    given = fetch()
    exported = torch.from_dlpack(given)  # given away
    printed = str(fetch()) != ""  # printed
    listed = fetch().tolist()  # listed
    stored = {}
    host = fetch()
    stored["copy"] = host.clone()  # cloned
    host = fetch()
    host.add_(1)  # changed in place
    host = fetch()
    host[2:4] = 0  # a part written
    host = fetch()
    host = host.to(torch.float64)  # converted
    staging = torch.ones(16).pin_memory()
    there = staging.to(device, non_blocking=True)
    reading = staging.sum() + staging[0]
    staging[3].fill_(-1.0)  # source written
    try:
        (fetch() + torch.ones(3)).sum()  # refused
    except RuntimeError:
        pass
    never = fetch()
    forgotten = never.numpy()  # nobody waits
"""


def test_every_use_before_a_wait_is_a_race_at_its_line(run_python):
    result = run_python(RACES, sim=1, options=["--quiet"])
    assert result.status == 0, result.stderr
    assert marked(RACES, result, "async-race") == sorted([
        "read at once", "used in an expression", "given away", "printed", "listed", "cloned", "changed in place",
        "a part written", "converted", "source written", "refused", "nobody waits",
    ])
    causes = {f["root_cause"]["line"] for f in result.findings if f["kind"] == "async-race"}
    lines = textwrap.dedent(RACES).splitlines()
    assert {lines[line - 1].strip() for line in causes} == {
        'return source.to("cpu", non_blocking=True)', "there = staging.to(device, non_blocking=True)"}


NUMBERS = """
    import math
    import torch

    device = torch.device("cuda", 0)
    number = torch.tensor(3.0, device=device)
    index = torch.tensor(2, device=device)
    matrix = torch.arange(12.0, device=device).view(4, 3)
    table = torch.arange(10)
    items = ["a", "b", "c"]

    torch.full((2,), number)  # fill value
    torch.full(size=(2,), fill_value=number, device=device)  # keyword
    matrix.add(matrix, alpha=number)  # alpha
    matrix[index]  # index of a device tensor
    table[index]  # index of a host tensor
    table[index] = 7  # assignment
    matrix[:index]  # slice
    torch.zeros(index, 2)  # size
    torch.arange(index)  # end
    torch.tensor([number, number])  # list of numbers
    matrix.masked_fill(matrix > 3, number)  # filled where
    torch.ops.aten.masked_fill.Tensor(matrix, matrix > 3, number)  # filled by the dispatcher
    torch.ops.aten.index_fill_.int_Tensor(matrix.clone(), 0, torch.tensor([0], device="cuda"), number)  # filled at an index
    items[index]  # list index
    range(index)  # range
    [0] * index  # repeated
    layers = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))
    layers[index]  # list of modules
    matrix.split((index, index))  # sizes
    torch.nn.functional.interpolate(matrix[None, None], size=(index, index))  # functional

    number.item()  # item
    float(number) + int(index)  # float
    math.sqrt(number)  # math
    bool(number > 2)  # bool
    if number > 2:  # if
        pass
    max(number, number + 1)  # max
    sorted([number, index])  # sorted
    matrix[matrix > 3]  # mask
    matrix.nonzero()  # nonzero
    print(matrix)  # print
    "%.1f" % number  # format
    [float(value) for value in matrix[0]]  # comprehension
    total = sum(float(value) for value in matrix[0])  # generator
    torch.full((2,), number.item())  # asked for
    torch.full((2,), float(number))  # asked for too
    matrix[int(index)]  # asked for as index
"""


def test_a_number_is_warned_of_only_where_an_operator_or_python_takes_it(run_python):
    result = run_python(NUMBERS, sim=1, options=["--quiet"])
    assert result.status == 0, result.stderr
    assert marked(NUMBERS, result, "implicit-sync") == sorted([
        "fill value", "keyword", "alpha", "index of a device tensor", "index of a host tensor", "assignment", "slice",
        "size", "end", "list of numbers", "filled where", "list index", "range", "repeated", "list of modules", "sizes",
        "functional",
    ])
    notes = marked(NUMBERS, result, "implicit-sync", "note")
    expected = {"item", "float", "math", "bool", "if", "max", "sorted", "mask", "nonzero", "print",
                "format", "comprehension", "generator", "asked for", "asked for too", "asked for as index",
                "filled by the dispatcher", "filled at an index"}
    assert expected - set(notes) == set()
    shown = subprocess.run([result.devsan, "view", str(result.out)], capture_output=True, text=True, check=True).stdout
    assert "hidden, --notes shows them" in shown and "nonzero" not in shown


COPIES = """
    import torch
    from torch.utils._pytree import tree_map

    device = torch.device("cuda", 0)
    pageable, pinned = torch.ones(8), torch.ones(8).pin_memory()
    for _ in range(3):
        there = pageable.to(device)  # repeated
        pinned.to(device, non_blocking=True)
        back = there.cpu()  # repeated back
    pageable.to(device, non_blocking=True)  # pageable
    pageable[:0].to(device, non_blocking=True)  # nothing to copy
    there.to(device, non_blocking=True)  # already there
    pageable.to(torch.float64, non_blocking=True)  # no device
    torch.nn.Linear(2, 2).to(device, non_blocking=True)  # a module
    matrix = there.view(2, 4)
    matrix[torch.tensor([1, 0])]  # host index
    once = torch.ones(3).to(device)  # once
"""


def test_copies_are_counted_with_their_bytes_and_judged_by_what_was_asked_for(run_python):
    result = run_python(COPIES, sim=1, options=["--quiet"])
    assert result.status == 0, result.stderr
    assert result.loud() == [f for f in result.findings if f["kind"] == "unpinned-async-copy" and not f["stack"][0]["torch"]]
    assert marked(COPIES, result, "unpinned-async-copy") == ["pageable"]
    assert marked(COPIES, result, "unpinned-async-copy", "note") == ["a module"]
    transfers = marked(COPIES, result, "implicit-transfer", "note")
    assert {"repeated", "repeated back"} <= set(transfers) and "once" not in transfers
    back = [f for f in result.findings if f["kind"] == "implicit-transfer" and f["op"].startswith("aten::to")][0]
    assert (back["count"], back["bytes"], back["per_step"]) == (3, 3 * 32, 3.0)
