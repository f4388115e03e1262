# source: ai-safety-foundation/sparse_autoencoder PR#174
# mechanism: firing counts of a sparse autoencoder are collected on the CPU; the indices of its dead neurons reset Adam's moments on the GPU
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2Model


class SparseAutoencoder(nn.Module):
    def __init__(self, inputs, learned):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(inputs))
        self.encoder, self.decoder = nn.Linear(inputs, learned), nn.Linear(learned, inputs, bias=False)

    def forward(self, x):
        h = F.relu(self.encoder(x - self.bias))
        return h, self.decoder(h) + self.bias


class AdamWithReset(torch.optim.Adam):
    def reset_neurons_state(self, parameter, neurons, axis):
        state = self.state[parameter]
        if len(state) == 0 or neurons.numel() == 0:
            return
        for name in ("exp_avg", "exp_avg_sq"):
            state[name].index_fill_(axis, neurons, 0)


class ActivationResampler:
    def __init__(self, learned, interval):
        self.counts = torch.zeros(learned, dtype=torch.long)
        self.interval, self.steps = interval, 0

    def step(self, activations):
        self.counts += (activations > 0).sum(0).cpu()
        self.steps += 1
        if self.steps % self.interval:
            return None
        dead = (self.counts == 0).nonzero().squeeze(1)  # ROOT
        self.counts.zero_()
        return dead


class Pipeline:
    def __init__(self, source, autoencoder, interval=2, l1=1e-3):
        self.accelerator = Accelerator()
        optimizer = AdamWithReset(autoencoder.parameters(), lr=1e-3)
        self.autoencoder, self.optimizer = self.accelerator.prepare(autoencoder, optimizer)
        self.source = source.to(self.accelerator.device).eval()
        self.resampler = ActivationResampler(autoencoder.encoder.out_features, interval)
        self.l1 = l1

    @torch.no_grad()
    def activations(self, ids):
        return self.source(input_ids=ids).last_hidden_state.flatten(0, 1)

    @torch.no_grad()
    def resample(self, dead, inputs):
        sae = self.accelerator.unwrap_model(self.autoencoder)
        rows = inputs[torch.arange(len(dead), device=inputs.device) % len(inputs)]
        sae.encoder.weight[dead] = 0.2 * F.normalize(rows, dim=1)
        sae.decoder.weight[:, dead] = F.normalize(rows, dim=1).T
        sae.encoder.bias[dead] = 0
        adam = self.optimizer.optimizer
        for parameter, axis in ((sae.encoder.weight, 0), (sae.encoder.bias, 0), (sae.decoder.weight, 1)):
            adam.reset_neurons_state(parameter, dead, axis)

    def run(self, loader):
        for ids in self.accelerator.prepare(loader):
            x = self.activations(ids)
            hidden, output = self.autoencoder(x)
            loss = F.mse_loss(output, x) + self.l1 * hidden.abs().mean()
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
            dead = self.resampler.step(hidden.detach())
            if dead is not None:
                self.resample(dead, x)
        return loss.item()


torch.manual_seed(0)
source = GPT2Model(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=16))
sae = SparseAutoencoder(16, 32)
nn.init.constant_(sae.encoder.bias, -0.9)
print(Pipeline(source, sae).run(DataLoader(torch.randint(0, 40, (24, 8)), batch_size=6)))
