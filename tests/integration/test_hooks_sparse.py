"""The history of sparse tensors, which have no storage of their own: it is that of their values."""

import pytest
from hooks_programs import found_at, line_of, odd_operand, steps_of

SPARSE = """\
import torch

dev = torch.device("cuda", 0)
index = torch.tensor([[0, 1, 2], [1, 2, 0]])


def attempt(body):
    try:
        body()
    except RuntimeError:
        pass


def ones():
    return torch.ones(3)  # @ones_made


def coo(x):
    adjacency = torch.sparse_coo_tensor(index, ones(), (3, 3))
    return torch.sparse.mm(adjacency, x)  # @coo


def coalesced(x):
    whole = torch.sparse_coo_tensor(index, ones(), (3, 3)).coalesce()  # @coalesced_made
    return torch.sparse.mm(whole, x)  # @coalesced


def listed(x):
    small = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (3, 3))  # @listed_made
    return torch.sparse.mm(small, x)  # @listed


def from_dense(x):
    sparse = torch.eye(3).to_sparse()  # @from_dense_made
    return torch.sparse.mm(sparse, x)  # @from_dense


def rows(x):
    compressed = torch.eye(3).to_sparse_csr()  # @rows_made
    return compressed @ x  # @rows


def empty(x):
    nothing = torch.sparse_coo_tensor(size=(3, 3))  # @empty_made
    return torch.sparse.mm(nothing, x)  # @empty


def moved(x):
    here = torch.eye(3).to_sparse()  # @moved_made
    there = here.to(dev)  # @moved_moved
    return torch.sparse.mm(there, x.cpu())  # @moved


class Graph(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.adjacency = torch.eye(3).to_sparse()  # @kept_made

    def forward(self, x):
        return torch.sparse.mm(self.adjacency, self.layer(x))  # @kept


features = torch.ones(3, 3, device=dev)
for body in (coo, coalesced, listed, from_dense, rows, empty, moved, Graph().to(dev)):
    attempt(lambda: body(features))
"""


@pytest.fixture(scope="module")
def sparse(devsan, python, tmp_path_factory):
    from harness import Runner
    result = Runner(devsan, python, tmp_path_factory.mktemp("sparse"))(SPARSE, sim=1)
    assert result.status == 0, result.stderr
    return result


@pytest.mark.parametrize("mark", ["coalesced", "listed", "from_dense", "rows", "empty", "kept"])
def test_a_sparse_tensor_has_the_history_of_its_values(sparse, mark):
    lineage = odd_operand(found_at(sparse, SPARSE, mark))["lineage"]
    assert lineage and lineage[0]["line"] == line_of(SPARSE, mark + "_made"), lineage
    assert lineage[-1]["how"] == "created", lineage


def test_values_that_a_sparse_tensor_takes_as_they_are_keep_their_history(sparse):
    assert (line_of(SPARSE, "ones_made"), "created") in steps_of(odd_operand(found_at(sparse, SPARSE, "coo")))


def test_a_move_of_a_sparse_tensor_is_a_step_of_its_history(sparse):
    steps = [steps_of(operand) for operand in found_at(sparse, SPARSE, "moved")["operands"]]
    assert [(line_of(SPARSE, "moved_moved"), "moved"), (line_of(SPARSE, "moved_made"), "derived")] in [
        step[:2] for step in steps], steps


def test_a_sparse_attribute_leads_to_the_line_that_stores_it(sparse):
    finding = found_at(sparse, SPARSE, "kept")
    assert finding["root_cause"]["line"] == line_of(SPARSE, "kept_made")
