# source: aassxun/SEMICON#2
# mechanism: the similarity matrix of a sampled training set lies on the CPU and is indexed with sample indices that were moved to the GPU with the batch
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class IndexedImages(Dataset):
    def __init__(self, n, classes, seed):
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, classes, (n,), generator=g)
        self.data = torch.randn(n, 1, 6, 6, generator=g) + self.targets.view(-1, 1, 1, 1)
        self.classes = classes

    def onehot(self):
        return nn.functional.one_hot(self.targets, self.classes).float()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i], self.targets[i], i


class HashNet(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.hash = nn.Linear(4 * 16, bits)

    def forward(self, x):
        return torch.tanh(self.hash(torch.relu(self.conv(x)).flatten(1)))


class AsymmetricLoss(nn.Module):
    def __init__(self, bits, gamma=200.0):
        super().__init__()
        self.bits, self.gamma = bits, gamma

    def forward(self, F, B, S, omega):
        hash_loss = ((self.bits * S - F @ B.t()) ** 2).mean()
        quant_loss = ((F - omega) ** 2).mean()
        return (hash_loss + self.gamma * quant_loss) / self.bits


def similarity(sampled, database):
    S = (sampled @ database.t() > 0).float()
    S[S == 0] = -1
    r = S.sum() / (1 - S).sum().clamp(min=1)
    return S * (1 + r.abs())


def train(loader, database, args):
    model = HashNet(args["bits"]).to(args["device"])
    criterion = AsymmetricLoss(args["bits"])
    optimizer = torch.optim.Adam(model.parameters(), lr=args["lr"])
    B = torch.randn(len(database), args["bits"]).sign().to(args["device"])
    S = similarity(loader.dataset.onehot(), database)  # ROOT
    U = torch.zeros(len(loader.dataset), args["bits"], device=args["device"])
    for _ in range(args["epochs"]):
        for data, _, index in loader:
            data, index = data.to(args["device"]), index.to(args["device"])
            F = model(data)
            U[index] = F.detach()
            loss = criterion(F, B, S[index, :], B[index])  # RAISE # ALSO
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        B[:len(U)] = (U + B[:len(U)]).sign()
    return model, B, loss.item()


@torch.no_grad()
def precision_at(model, query, B, database, k, device):
    codes = model(query.data.to(device)).sign()
    top = (codes @ B.t()).topk(k, dim=1).indices.cpu()
    labels = database.argmax(1)[top]
    return (labels == query.targets.unsqueeze(1)).float().mean().item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set, query = IndexedImages(12, 3, 0), IndexedImages(4, 3, 1)
    args = {"bits": 8, "lr": 1e-3, "epochs": 2, "device": device}
    loader = DataLoader(train_set, batch_size=4, shuffle=True)
    model, B, loss = train(loader, train_set.onehot(), args)
    print(loss, precision_at(model, query, B, train_set.onehot(), 3, device))


if __name__ == "__main__":
    main()
