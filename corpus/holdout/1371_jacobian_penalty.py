# source: facebookresearch/jacobian_regularizer#2
# mechanism: a regularizer that finds its input on a GPU makes its random vectors with .cuda(), on the first GPU instead of the one of the input
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
import torch.autograd as autograd


class JacobianReg(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        assert n == -1 or n > 0
        self.n = n

    def forward(self, x, y):
        batch, classes = y.shape
        num_proj = classes if self.n == -1 else self.n
        total = 0
        for i in range(num_proj):
            if self.n == -1:
                v = torch.zeros(batch, classes, device=y.device)
                v[:, i] = 1
            else:
                v = self._random_vector(classes, batch)
                if x.is_cuda:
                    v = v.cuda()  # ROOT
            jv = self._jacobian_vector_product(y, x, v, create_graph=True)
            total = total + classes * torch.norm(jv) ** 2 / (num_proj * batch)
        return 0.5 * total

    def _random_vector(self, classes, batch):
        if classes == 1:
            return torch.ones(batch)
        v = torch.randn(batch, classes)
        return v / torch.norm(v, 2, 1, keepdim=True)

    def _jacobian_vector_product(self, y, x, v, create_graph=False):
        flat_y, flat_v = y.reshape(-1), v.reshape(-1)
        projected = torch.dot(flat_y, flat_v)  # RAISE
        (grad_x,) = autograd.grad(projected, x, retain_graph=True, create_graph=create_graph)
        return grad_x


class Mlp(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 12), nn.Tanh(), nn.Linear(12, classes))
        self.register_buffer("temperature", torch.tensor(1.5))

    def forward(self, x):
        return self.body(x) / self.temperature


class RobustTrainer:
    def __init__(self, model, device, lambda_jr=0.01):
        self.device = device
        self.model = model.to(device)
        self.reg = JacobianReg(n=1)
        self.lambda_jr = lambda_jr
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.criterion = nn.CrossEntropyLoss()

    def training_step(self, data, target):
        data, target = data.to(self.device), target.to(self.device)
        data.requires_grad_(True)
        output = self.model(data)
        loss_super = self.criterion(output, target)
        loss = loss_super + self.lambda_jr * self.reg(data, output)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def batches(n, features, classes):
    gen = torch.Generator().manual_seed(4)
    for _ in range(n):
        x = torch.randn(8, features, generator=gen)
        yield x, x[:, :classes].argmax(1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", torch.cuda.device_count() - 1)
    trainer = RobustTrainer(Mlp(6, 3), device)
    for data, target in batches(3, 6, 3):
        loss = trainer.training_step(data, target)
    print("loss %.3f" % loss)


if __name__ == "__main__":
    main()
