# source: huggingface/transformers#33567, fix PR#35154 (Mamba2 slow path, multi-GPU)
# mechanism: [state cache] one tensor holds the convolution states of all layers on the first GPU; a layer on the second GPU reads its slice in the one-token step
# phase: generation, second token; failing op: aten::mul (cuda:0 states, cuda:1 conv weight)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

class Mamba2Cache:
    def __init__(self, num_layers, batch_size, channels, kernel, device):
        self.conv_states = torch.zeros(num_layers, batch_size, channels, kernel, device=device)

    def update_conv_state(self, layer_idx, new):
        rolled = torch.cat([self.conv_states[layer_idx], new.to(self.conv_states.device)], dim=-1)
        self.conv_states[layer_idx] = rolled[..., -self.conv_states.shape[-1]:]

class Mamba2Mixer(nn.Module):
    def __init__(self, channels, kernel, layer_idx):
        super().__init__()
        self.in_proj, self.layer_idx = nn.Linear(channels, channels), layer_idx
        self.conv1d = nn.Conv1d(channels, channels, kernel, groups=channels, padding=kernel - 1)

    def torch_forward(self, hidden, cache_params, cache_position):
        x = self.in_proj(hidden).transpose(1, 2)
        cache_params.update_conv_state(self.layer_idx, x)
        if cache_position > 0:
            conv_states = cache_params.conv_states[self.layer_idx]  # ROOT
            return torch.sum(conv_states * self.conv1d.weight.squeeze(1), dim=-1)[:, None] + self.conv1d.bias  # RAISE  # ALSO
        return self.conv1d(x)[..., : hidden.shape[1]].transpose(1, 2)

class Mamba2ForCausalLM(nn.Module):
    def __init__(self, channels, devices):
        super().__init__()
        self.embed = nn.Embedding(16, channels).to(devices[0])
        self.mixers = nn.ModuleList(Mamba2Mixer(channels, 4, i).to(d) for i, d in enumerate(devices))

    @torch.no_grad()
    def generate(self, input_ids, steps):
        cache, hidden = Mamba2Cache(len(self.mixers), len(input_ids), 6, 4, input_ids.device), self.embed(input_ids)
        for position in range(steps):
            for mixer in self.mixers:
                hidden = mixer.torch_forward(hidden.to(mixer.in_proj.weight.device), cache, position)
            hidden = self.embed(hidden[:, -1:].argmax(-1).to(self.embed.weight.device))

Mamba2ForCausalLM(6, ["cuda:0", "cuda:1"]).generate(torch.tensor([[4, 2, 9]], device="cuda:0"), 3)
