# source: ndrplz/ConvLSTM_pytorch#10
# mechanism: the first hidden state of a recurrent cell is made without the device of the cell's weights
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ConvLSTMCell(nn.Module):
    def __init__(self, input_dim, hidden_dim, kernel_size):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.conv = nn.Conv2d(input_dim + hidden_dim, 4 * hidden_dim, kernel_size, padding=kernel_size // 2)

    def forward(self, x, state):
        h, c = state
        gates = self.conv(torch.cat([x, h], dim=1))  # RAISE
        i, f, o, g = gates.chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    def init_hidden(self, batch_size, image_size):
        height, width = image_size
        zeros = torch.zeros(batch_size, self.hidden_dim, height, width)  # ROOT
        return zeros, zeros.clone()


class ConvLSTM(nn.Module):
    def __init__(self, input_dim, hidden_dims, kernel_size=3, return_all_layers=False):
        super().__init__()
        dims = [input_dim] + list(hidden_dims)
        self.cells = nn.ModuleList(
            [ConvLSTMCell(cin, cout, kernel_size) for cin, cout in zip(dims, hidden_dims)]
        )
        self.return_all_layers = return_all_layers

    def forward(self, frames, hidden_state=None):
        batch, steps, _, height, width = frames.shape
        if hidden_state is None:
            hidden_state = self._init_hidden(batch, (height, width))
        current, outputs, states = frames, [], []
        for cell, state in zip(self.cells, hidden_state):
            sequence = []
            for t in range(steps):
                state = cell(current[:, t], state)
                sequence.append(state[0])
            current = torch.stack(sequence, dim=1)
            outputs.append(current)
            states.append(state)
        if not self.return_all_layers:
            outputs = outputs[-1:]
        return outputs, states

    def _init_hidden(self, batch_size, image_size):
        return [cell.init_hidden(batch_size, image_size) for cell in self.cells]


class FramePredictor(nn.Module):
    def __init__(self, channels=1, hidden=(4, 4)):
        super().__init__()
        self.recurrent = ConvLSTM(channels, hidden)
        self.out = nn.Conv2d(hidden[-1], channels, 1)

    def forward(self, frames, horizon):
        outputs, states = self.recurrent(frames)
        frame = self.out(outputs[-1][:, -1]).sigmoid()
        predicted = [frame]
        for _ in range(horizon - 1):
            outputs, states = self.recurrent(frame[:, None], states)
            frame = self.out(outputs[-1][:, -1]).sigmoid()
            predicted.append(frame)
        return torch.stack(predicted, dim=1)


class MovingSquares(Dataset):
    def __init__(self, count, length, size=10):
        self.count, self.length, self.size = count, length, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        clip = torch.zeros(self.length, 1, self.size, self.size)
        for t in range(self.length):
            x = (index + t) % (self.size - 3)
            clip[t, 0, 2:5, x:x + 3] = 1.0
        return clip


def run_epoch(model, loader, device, past, optimizer=None):
    losses = []
    for clips in loader:
        clips = clips.to(device)
        future = clips[:, past:]
        loss = nn.functional.mse_loss(model(clips[:, :past], future.shape[1]), future)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = FramePredictor().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(MovingSquares(6, 5), batch_size=3)
    print("train", round(run_epoch(model, loader, device, 3, optimizer), 4))
    with torch.no_grad():
        print("test", round(run_epoch(model.eval(), loader, device, 3), 4))


if __name__ == "__main__":
    main()
