# source: huggingface/peft PR#3418 (state.SCB is moved to weight.data.device before the dequantization)
# mechanism: [quantized layer] a parked 8-bit weight is brought to the device to be dequantized, its scales in a state object are not
# phase: adapter initialization; failing op: aten::mul
# expect: raises
# root: integrations.py:dequantize_bnb_weight: state.SCB = weight.SCB, never moved
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class MatmulState:
    SCB = None


class Linear8bit(nn.Module):
    def __init__(self, weight):
        super().__init__()
        scb = weight.abs().amax(1)
        self.weight = nn.Parameter((weight / scb[:, None] * 127).round().to(torch.int8), requires_grad=False)
        self.weight.SCB = scb
        self.state = MatmulState()


def int8_dequant(data, scales):
    return data.float() * scales.view(-1, 1) / 127     # RAISE  # ALSO


def dequantize(weight, state):
    data = weight.data.to(dev)
    if state.SCB is None:
        state.SCB = weight.SCB                         # ROOT
    return int8_dequant(data, state.SCB)  # ALSO


class Dora(nn.Module):
    def __init__(self, base):
        super().__init__()
        w = dequantize(base.weight, base.state)
        self.magnitude = nn.Parameter(w.norm(dim=1))

Dora(Linear8bit(torch.randn(4, 3)))
