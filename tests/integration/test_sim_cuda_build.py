"""Simulated devices in a torch that was built with CUDA: none of its CUDA kernels runs, and nothing asks for a driver."""

import json
import subprocess

import pytest

from harness import is_cuda_build

# A driver that ends every process that calls it. (CUDA's libraries look for one while torch is imported.)
DRIVER = r"""
#include <unistd.h>
static int end(void) {
  static const char text[] = "the driver was called\n";
  write(2, text, sizeof text - 1);
  _exit(99);
}
int cuInit(void) { return end(); }
int cuDriverGetVersion(void) { return end(); }
int cuGetProcAddress(void) { return end(); }
int cuGetProcAddress_v2(void) { return end(); }
"""

KERNELS = """
import json, torch
KEYS = ("CUDA", "SparseCUDA", "SparseCsrCUDA", "NestedTensorCUDA", "QuantizedCUDA")
seen, left = 0, []
for name in torch._C._dispatch_get_all_op_names():
    if name.startswith("c10d::"):
        continue  # the collectives, which PyTorch has for every device
    for line in torch._C._dispatch_dump(name).splitlines():
        key, _, where = line.partition(": ")
        if key in KEYS:  # those that another kernel was put over say so
            seen += 1
            if "devsan" not in where and "sim/" not in where:
                left.append(line)
print(json.dumps([seen, left]))
"""

TRAINING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.RMSNorm(8)])
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(8, 4)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)
        for norm in self.norms:
            x = norm(x)
        x = self.attention(x, x, x, need_weights=False)[0]
        x = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return self.head(self.dropout(x).mean(1))

torch.manual_seed(1)
model = Net().cuda()
losses = []
for options in ({"foreach": True}, {"foreach": False}, {"fused": True}):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    for step in range(3):
        tokens = torch.randint(16, (4, 6), device="cuda")
        target = torch.randint(4, (4,), device="cuda:0")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens).float(), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
assert all(0 < loss < 10 for loss in losses), losses

stream, event = torch.cuda.Stream(1), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(stream):
    other = torch.randn(8, 8, pin_memory=True).to("cuda:1", non_blocking=True)
    event.record()
event.synchronize()
torch.cuda.synchronize(1)
assert other.cpu().device.type == "cpu" and torch.cuda.memory_allocated(1) > 0
assert torch.linalg.solve(other, other).device == other.device
assert torch.Generator("cuda:1").device.index == 1
assert torch.UntypedStorage(8, device="cuda").device.type == "cuda"
torch.save({"w": other.cpu()}, "saved.pt")
assert torch.load("saved.pt", map_location="cuda:1")["w"].device.index == 1
print(torch.cuda.device_count(), torch.cuda.get_device_name(1), torch.backends.cudnn.is_available())
"""


@pytest.fixture(autouse=True)
def only_for_a_cuda_build(python):
    if not is_cuda_build(python):
        pytest.skip("this torch was built without CUDA")


@pytest.fixture
def without_driver(tmp_path):
    """The environment of a process that may not call the CUDA driver."""
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    library = tmp_path / "driver" / "libcuda.so.1"
    library.parent.mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", library, source], check=True)
    return {"LD_LIBRARY_PATH": str(library.parent)}


def test_a_call_of_the_driver_would_be_noticed(run_python, without_driver):
    result = run_python("import torch; torch.cuda.is_available()", env=without_driver, plain=True)
    assert (result.status, result.stderr) == (99, "the driver was called\n")


def test_every_cuda_kernel_of_torch_is_covered(run_python):
    result = run_python(KERNELS, sim=1)
    assert result.status == 0, result.stderr
    seen, left = json.loads(result.stdout)
    assert seen > 1500 and left == []


def test_a_training_never_asks_for_the_driver(run_python, without_driver):
    result = run_python(TRAINING, sim=2, env=without_driver)
    assert result.status == 0, result.stderr
    assert result.stdout == "2 NVIDIA H100 80GB HBM3 (simulated by devsan) False\n"
    assert result.stderr == ""
