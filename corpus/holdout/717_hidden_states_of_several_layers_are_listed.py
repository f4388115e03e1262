# source: NVIDIA/Model-Optimizer PR#2458 (DFlash pseudo_speculative_generate with device_map="auto")
# mechanism: [model-parallel hook] hidden states of early and late layers of a sharded base model are gathered for the draft module
# phase: speculative generation; failing op: aten::cat (cuda:0, cuda:1)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

class BaseModel(nn.Module):
    def __init__(self, width, devices):
        super().__init__()
        self.embed = nn.Embedding(20, width).to(devices[0])
        self.layers = nn.ModuleList(nn.Linear(width, width).to(d) for d in devices)
        self.lm_head = nn.Linear(width, 20).to(devices[-1])

    def forward(self, input_ids):
        hidden_states = [self.embed(input_ids)]
        for layer in self.layers:
            hidden_states.append(layer(hidden_states[-1].to(layer.weight.device)).relu())
        return self.lm_head(hidden_states[-1]), hidden_states
class DraftModule(nn.Module):
    def __init__(self, width, taps, block_size):
        super().__init__()
        self.fc, self.head, self.block_size = nn.Linear(width * taps, width), nn.Linear(width, 20 * block_size), block_size

    def forward(self, target_hidden):
        block = self.head(self.fc(target_hidden[:, -1]).relu())
        return block.view(block.shape[0], self.block_size, -1).argmax(-1)
class DFlashModel(nn.Module):
    def __init__(self, width=4, target_layer_ids=(0, 2), block_size=2):
        super().__init__()
        self.base = BaseModel(width, ["cuda:0", "cuda:0", "cuda:1"])
        self.target_layer_ids, self.hid_offset = target_layer_ids, 1
        self.dflash_module = DraftModule(width, len(target_layer_ids), block_size).to(self.base.lm_head.weight.device)

    @torch.no_grad()
    def pseudo_speculative_generate(self, input_ids):
        logits, hidden_states = self.base(input_ids)
        base_token = logits[:, -1:].argmax(-1).to(input_ids.device)
        selected = [hidden_states[lid + self.hid_offset] for lid in self.target_layer_ids]  # ROOT
        target_hidden = torch.cat(selected, dim=-1)  # RAISE  # ALSO
        return base_token, self.dflash_module(target_hidden).to(input_ids.device)

DFlashModel().pseudo_speculative_generate(torch.tensor([[3, 7, 11]], device="cuda:0"))
