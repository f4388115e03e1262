# source: pyg-team/pytorch_geometric#8926
# mechanism: [dict of tensors] message store of a temporal graph memory is a plain dict filled at construction; the module moves, the stored messages do not, and eval() flushes them
# phase: switch to eval mode; failing op: aten::sub
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class NodeMemory(nn.Module):
    def __init__(self, num_nodes, dim):
        super().__init__()
        self.num_nodes = num_nodes
        self.time_enc = nn.Linear(1, dim)
        self.gru = nn.GRUCell(dim, dim)
        self.register_buffer("memory", torch.zeros(num_nodes, dim))
        self.register_buffer("last_update", torch.zeros(num_nodes, dtype=torch.long))
        self.reset_state()

    def reset_state(self):
        self.memory.zero_(), self.last_update.zero_()
        i = self.last_update.new_empty(0)
        self.msg_store = {node: (i, i) for node in range(self.num_nodes)}

    def compute_messages(self, n_id):
        data = [self.msg_store[i] for i in n_id.tolist()]  # ALSO
        src, t = (torch.cat(column) for column in zip(*data))  # ROOT
        t_rel = t - self.last_update[src]  # RAISE
        return src, self.time_enc(t_rel.float().view(-1, 1)).cos()

    def update_memory(self, n_id):
        src, msg = self.compute_messages(n_id)
        inputs = self.memory.new_zeros(self.num_nodes, msg.shape[1]).index_add(0, src, msg)
        self.memory[n_id] = self.gru(inputs[n_id], self.memory[n_id]).detach()

    def train(self, mode=True):
        if self.training and not mode:
            self.update_memory(torch.arange(self.num_nodes, device=self.memory.device))
            self.reset_state()
        return super().train(mode)

memory = NodeMemory(num_nodes=6, dim=4).to(dev)
memory.eval()
