# source: jeshraghian/snntorch#198
# mechanism: the device of an initial membrane state is told from is_cuda only, so a batch on the second GPU gets a state on the first one
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class SurrogateSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, membrane):
        ctx.save_for_backward(membrane)
        return (membrane > 0).float()

    @staticmethod
    def backward(ctx, grad):
        (membrane,) = ctx.saved_tensors
        return grad / (1 + 10 * membrane.abs()).pow(2)


class SpikingConvLSTM(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size=3, threshold=0.1):
        super().__init__()
        self.out_channels = out_channels
        self.threshold = threshold
        self.conv = nn.Conv2d(in_channels + out_channels, 4 * out_channels, kernel_size, padding=kernel_size // 2)

    def _reshape_input(self, input_):
        device = "cuda" if input_.is_cuda else "cpu"  # ROOT
        batch, _, height, width = input_.shape
        return torch.zeros(batch, self.out_channels, height, width).to(device)  # ALSO

    def init_state(self, input_):
        synapse = self._reshape_input(input_)
        return synapse, synapse.clone()

    def forward(self, input_, state=None):
        synapse, membrane = self.init_state(input_) if state is None else state
        gates = self.conv(torch.cat((input_, membrane), dim=1))  # RAISE
        i, f, g, o = gates.chunk(4, dim=1)
        synapse = f.sigmoid() * synapse + i.sigmoid() * g.tanh()
        membrane = o.sigmoid() * synapse.tanh()
        spike = SurrogateSpike.apply(membrane - self.threshold)
        return spike, (synapse, membrane - spike * self.threshold)


class SpikingClassifier(nn.Module):
    def __init__(self, channels=2, width=4, classes=3):
        super().__init__()
        self.layer1 = SpikingConvLSTM(channels, width)
        self.pool = nn.MaxPool2d(2)
        self.layer2 = SpikingConvLSTM(width, width)
        self.readout = nn.Linear(width, classes)

    def forward(self, frames):
        state1 = state2 = None
        counts = 0
        for frame in frames.unbind(1):
            spike, state1 = self.layer1(frame, state1)
            spike, state2 = self.layer2(self.pool(spike), state2)
            counts = counts + self.readout(spike.mean((2, 3)))
        return counts / frames.shape[1]


class EventFrames:
    def __init__(self, batches, steps=3, size=8, seed=0):
        self.gen = torch.Generator().manual_seed(seed)
        self.batches, self.steps, self.size = batches, steps, size

    def __iter__(self):
        for _ in range(self.batches):
            shape = (4, self.steps, 2, self.size, self.size)
            yield (torch.rand(shape, generator=self.gen) > 0.8).float(), torch.randint(0, 3, (4,), generator=self.gen)


def train(net, data, device):
    net.to(device).train()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    losses = []
    for frames, labels in data:
        frames, labels = frames.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(net(frames), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    return losses


def select_devices(wanted):
    available = torch.cuda.device_count()
    return [torch.device("cuda", index) for index in wanted if index < available] or [torch.device("cpu")]


def main():
    torch.manual_seed(0)
    for fold, device in enumerate(select_devices([0, 1])):
        print("fold", fold, train(SpikingClassifier(), EventFrames(2, seed=fold), device))


if __name__ == "__main__":
    main()
