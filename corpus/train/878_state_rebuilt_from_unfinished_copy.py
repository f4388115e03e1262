# source: stepfun-ai/SteptronOss PR#38 (tensor_to_dict)
# mechanism: [async copy race] a byte buffer is copied device-to-host with non_blocking=True and cut into tensors by the CPU before the copy has finished
# phase: receiving a state dict; failing op: Tensor.to(non_blocking=True)
# expect: silent
# kinds: async-race
import torch

dev = torch.device("cuda", 0)


def dict_to_tensor(state):
    meta = [(k, tuple(v.shape), v.dtype) for k, v in state.items()]
    return torch.cat([v.reshape(-1).view(torch.uint8) for v in state.values()]), meta

def tensor_to_dict(buffer, meta, target):
    flat = buffer.to(target, non_blocking=True)  # ROOT
    state, start = {}, 0
    for key, shape, dtype in meta:
        value = torch.empty(shape, dtype=dtype, device=target)
        raw = value.view(-1).view(torch.uint8)
        raw.copy_(flat[start:start + raw.numel()])  # RAISE
        state[key], start = value, start + raw.numel()
    return state

net = torch.nn.Linear(16, 8).to(dev)
buffer, meta = dict_to_tensor({k: v.detach() for k, v in net.state_dict().items()})
tensor_to_dict(buffer, meta, torch.device("cpu"))
