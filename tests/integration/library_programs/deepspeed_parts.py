"""What programs about DeepSpeed share."""

import torch


def train_another_model(device):
    """Steps in which nothing touches the engine's tensors: devsan looks at where they are when a backward ends."""
    other = torch.nn.Linear(16, 4, device=device)
    for _ in range(3):
        other(torch.randn(2, 16, device=device)).sum().backward()
