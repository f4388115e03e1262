# source: rapidsai/cugraph#3070 (fixed in PyG's graph store: device=src.device)
# mechanism: [storage of another device] two neighbouring rows are joined without a copy: an empty CPU tensor is set onto a CUDA storage
# phase: graph sampling, edge lookup; failing op: Tensor.set_
# expect: raises
import torch

dev = torch.device("cuda:0")


class RelationBook:
    def __init__(self):
        self.rows = {}

    def put(self, relation, pairs):
        self.rows[relation] = tuple(pairs.unbind(0))

    def pairs(self, relation):
        head, tail = self.rows[relation]
        count = head.numel()
        if tail.data_ptr() - head.data_ptr() == count * head.element_size():
            view = torch.empty(0, dtype=head.dtype)  # ROOT
            return view.set_(head.untyped_storage(), head.storage_offset(), (2, count), (count, 1))  # RAISE
        return torch.stack([head, tail])


def spread(book, relation, x):
    head, tail = book.pairs(relation)
    return torch.zeros_like(x).index_add_(0, tail, x[head])


book = RelationBook()
book.put("cites", torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]], device=dev))
x = torch.randn(4, 6, device=dev)
for _ in range(2):
    x = spread(book, "cites", x)
