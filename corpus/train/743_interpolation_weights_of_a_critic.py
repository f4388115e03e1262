# source: aladdinpersson/Machine-Learning-Collection#58
# mechanism: [factory call without device=] interpolation weight of the WGAN-GP penalty drawn with torch.rand on the CPU
# phase: critic loss; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def gradient_penalty(critic, real, fake):
    batch_size, c, h, w = real.shape
    alpha = torch.rand((batch_size, 1, 1, 1)).repeat(1, c, h, w)  # ROOT
    interpolated = real * alpha + fake * (1 - alpha)  # RAISE
    interpolated.requires_grad_(True)
    scores = critic(interpolated)
    grad = torch.autograd.grad(scores, interpolated, torch.ones_like(scores), create_graph=True, retain_graph=True)[0]
    return ((grad.view(grad.shape[0], -1).norm(2, dim=1) - 1) ** 2).mean()


gen = nn.Sequential(nn.ConvTranspose2d(8, 3, 8), nn.Tanh()).to(dev)
critic = nn.Sequential(nn.Conv2d(3, 4, 4, 2), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 3)).to(dev)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
for real in torch.rand(2, 4, 3, 8, 8):
    real = real.to(dev)
    for _ in range(2):
        fake = gen(torch.randn(real.shape[0], 8, 1, 1, device=dev))
        critic_real, critic_fake = critic(real).reshape(-1), critic(fake).reshape(-1)
        gp = gradient_penalty(critic, real, fake.detach())
        loss = -(critic_real.mean() - critic_fake.mean()) + 10 * gp
        opt_critic.zero_grad()
        loss.backward()
        opt_critic.step()
