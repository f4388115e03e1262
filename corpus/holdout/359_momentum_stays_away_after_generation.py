# source: https://github.com/NVIDIA-NeMo/RL/issues/1869, https://github.com/NVIDIA-NeMo/RL/pull/2239
# mechanism: model and optimizer leave the GPU while samples are generated; only the model comes back
# phase: second step of the optimizer; aten::_foreach_add_
# expect: raises
import contextlib

import torch

device = torch.device("cuda")


def offload(optimizer):
    for state in optimizer.state.values():
        if state.get("momentum_buffer") is not None:
            state["momentum_buffer"] = state["momentum_buffer"].cpu()


@contextlib.contextmanager
def gpu_for_generation(policy, optimizer):
    optimizer.zero_grad(set_to_none=True)
    policy.to("cpu")
    offload(optimizer)
    try:
        yield
    finally:
        policy.to(device)  # ROOT


def generate(engine, policy, count):
    engine.load_state_dict(policy.state_dict())
    with torch.no_grad():
        prompts = torch.randn(count, 4, device=device)
        actions = torch.distributions.Categorical(logits=engine(prompts)).sample()
    return prompts, actions, prompts.sum(-1) * (actions - 1)


def improve(policy, optimizer, prompts, actions, rewards):
    chosen = policy(prompts).log_softmax(-1).gather(1, actions[:, None]).squeeze(1)
    loss = -(chosen * (rewards - rewards.mean())).mean()
    loss.backward()
    optimizer.step()  # RAISE
    return loss.detach()


policy, engine = torch.nn.Linear(4, 3).to(device), torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-2, momentum=0.9)
losses = []
for _ in range(3):
    with gpu_for_generation(policy, optimizer):
        samples = generate(engine, policy, count=6)
    losses.append(improve(policy, optimizer, *samples))
print(torch.stack(losses).tolist())
