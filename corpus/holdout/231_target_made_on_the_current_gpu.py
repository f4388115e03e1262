# source: Project-MONAI/GenerativeModels PR#371, NVIDIA/DeepLearningExamples PR#1432
# mechanism: .cuda() means the current device, which is the first; the networks live on the second
# phase: loss; aten::mse_loss
# expect: raises
# needs: 2 GPUs
import torch


class AdversarialLoss(torch.nn.Module):
    def __init__(self, real=1.0, fake=0.0):
        super().__init__()
        self.real, self.fake = real, fake

    def forward(self, verdicts, wanted):
        target = torch.full(verdicts.shape, self.real if wanted else self.fake).cuda()  # ROOT
        return torch.nn.functional.mse_loss(verdicts, target)  # RAISE


def train(device, steps):
    generator = torch.nn.Linear(2, 4).to(device)
    critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(device)
    optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in (generator, critic)]
    adversarial = AdversarialLoss().to(device)
    for _ in range(steps):
        real = torch.randn(6, 4, device=device)
        made = generator(torch.randn(6, 2, device=device))
        loss = adversarial(critic(real), True) + adversarial(critic(made.detach()), False)
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()


train(torch.device("cuda", 1), steps=2)
