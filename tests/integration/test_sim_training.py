"""Training on simulated devices gives the CPU's numbers, in one process and in two."""

import socket

import pytest

MODEL = """
import torch
def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.LayerNorm(16),
        torch.nn.GELU(), torch.nn.Linear(16, 3))
def make_batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(8, 1, 8, 8, generator=generator), torch.randint(0, 3, (8,), generator=generator)
"""

ONE_PROCESS = MODEL + """
def train(device, make_optimizer):
    model = make_model().to(device)
    images, labels = (tensor.to(device) for tensor in make_batch())
    optimizer = make_optimizer(model.parameters())
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert all(parameter.device.type == torch.device(device).type for parameter in model.parameters())
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]
for make_optimizer in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01),
        lambda p: torch.optim.Adam(p, lr=0.01, foreach=False), lambda p: torch.optim.AdamW(p, lr=0.01, fused=True)):
    on_cpu, on_device = train("cpu", make_optimizer), train("cuda:1", make_optimizer)
    torch.testing.assert_close(on_device[0], on_cpu[0])
    torch.testing.assert_close(on_device[1], on_cpu[1])
    assert on_cpu[0][-1] < on_cpu[0][0]
print("equal")
"""

MIXED_PRECISION = MODEL + """
model = make_model().cuda()
images, labels = (tensor.cuda() for tensor in make_batch())
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cuda", init_scale=2.0**8)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        outputs = model(images)
        assert outputs.dtype == torch.float16
        loss = torch.nn.functional.cross_entropy(outputs, labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
print("learned")
"""

BACKWARD_AND_EXIT = """
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, gradient):
        return gradient * 2
x = torch.ones(3, device="cuda", requires_grad=True)
Double.apply(Double.apply(x)).sum().backward()
assert x.grad.tolist() == [4.0] * 3
"""


def test_training_on_a_device_gives_the_numbers_of_the_cpu(run_python):
    result = run_python(ONE_PROCESS, sim=2)
    assert (result.status, result.stdout.strip()) == (0, "equal"), result.stderr


def test_autocast_and_gradient_scaling_train(run_python):
    result = run_python(MIXED_PRECISION, sim=1)
    assert (result.status, result.stdout.strip()) == (0, "learned"), result.stderr


def test_a_program_may_end_right_after_its_backward_pass(run_python):
    for _ in range(3):
        assert run_python(BACKWARD_AND_EXIT, sim=1).status == 0


COLLECTIVES = """
import sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
def full(value, size=2, dtype=torch.float32):
    return torch.full((size,), value, device=device, dtype=dtype)
def check(tensor, expected):
    assert tensor.device == device and tensor.tolist() == expected, (tensor, expected)

assert world == 2 and dist.get_backend() == "nccl"
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
    tensor = full(rank + 1, dtype=dtype)
    dist.all_reduce(tensor)
    check(tensor, [3, 3])
tensor = full(rank + 1.0)
dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
check(tensor, [1.5, 1.5])
tensor = full(rank + 1.0)  # each rank brings a factor of its own
dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5 + rank))
check(tensor, [3.5, 3.5])
halves, sent = full(0.0), torch.arange(4.0, device=device)
dist.reduce_scatter_tensor(halves, sent, op=dist._make_nccl_premul_sum(torch.full((1,), 0.5, device=device)))
check(halves, [[0, 1], [2, 3]][rank])
check(sent, [0, 1, 2, 3])
flags = torch.tensor([True, rank == 1, False], device=device)
dist.all_reduce(flags)
check(flags, [True, True, False])
tensor = full(rank)
work = dist.all_reduce(tensor, async_op=True)
work.wait()
check(tensor, [1, 1])
tensor = full(rank + 5)
dist.broadcast(tensor, src=1)
check(tensor, [6, 6])
scalar = torch.tensor(float(rank + 5), device=device)
dist.broadcast(scalar, src=1)
assert scalar.item() == 6
tensor = full(rank + 1)
dist.reduce(tensor, dst=0)
check(tensor, [[3, 3], [2, 2]][rank])
parts = [full(0) for _ in range(world)]
dist.all_gather(parts, full(rank))
check(torch.cat(parts), [0, 0, 1, 1])
gathered = full(0, 4)
dist.all_gather_into_tensor(gathered, full(rank))
check(gathered, [0, 0, 1, 1])
scattered = full(0)
dist.reduce_scatter_tensor(scattered, torch.arange(4.0, device=device))
check(scattered, [[0, 2], [4, 6]][rank])
dist.reduce_scatter(scattered, [full(1), full(2)])
check(scattered, [2 * (rank + 1)] * 2)
exchanged = full(0)
dist.all_to_all_single(exchanged, torch.tensor([10.0 * rank, 10.0 * rank + 1], device=device))
check(exchanged, [rank, 10 + rank])
flags = torch.zeros(2, dtype=torch.bool, device=device)
dist.all_to_all_single(flags, torch.tensor([rank == 0, True], device=device))
check(flags, [True, rank == 1])
lists = [full(0, 1) for _ in range(world)]
dist.all_to_all(lists, [full(10 * rank + peer, 1) for peer in range(world)])
check(torch.cat(lists), [rank, 10 + rank])
collected = [full(0, 1) for _ in range(world)] if rank == 0 else None
dist.gather(full(rank, 1), collected, dst=0)
if rank == 0:
    check(torch.cat(collected), [0, 1])
one = full(0, 1)
dist.scatter(one, [full(5, 1), full(6, 1)] if rank == 0 else None, src=0)
check(one, [5 + rank])
received, peer = full(0, 1000), 1 - rank
for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, full(rank, 1000), peer),
                                    dist.P2POp(dist.irecv, received, peer)]):
    work.wait()
check(received, [peer] * 1000)
objects = [None] * world
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}]
alone = dist.new_group([0])
if rank == 0:
    tensor = full(1)
    dist.all_reduce(tensor, group=alone)
    check(tensor, [1, 1])
for wrong, words in ((torch.ones(2), "No backend type associated with device type cpu"),
                     (torch.ones(3, 2, device=device).t(), "Tensors must be contiguous")):
    try:
        dist.all_reduce(wrong)
        raise AssertionError("this should have raised")
    except (RuntimeError, ValueError) as error:
        assert words in str(error), error
dist.barrier()
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")  # in one piece: two processes share the pipe
"""

# Without a group for each device, gloo serves both.
GLOO = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank)
assert world == 2 and dist.get_backend() == "gloo"
for place in (device, torch.device("cpu")):
    tensor = torch.full((2,), rank + 1.0, device=place)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert tensor.device == place and tensor.tolist() == [3, 3], tensor
    parts = [torch.zeros(2, device=place) for _ in range(world)]
    dist.all_gather(parts, torch.full((2,), float(rank), device=place))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1]], parts
    dist.broadcast(tensor.fill_(rank), src=1)
    assert tensor.tolist() == [1, 1], tensor
pair = dist.new_group([0, 1])
tensor = torch.full((2,), rank + 1.0, device=device)
dist.all_reduce(tensor, group=pair)
assert tensor.tolist() == [3, 3] and dist.get_backend(pair) == "gloo"
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).to(device), device_ids=[rank],
                                                  gradient_as_bucket_view=True)
model(torch.full((4, 3), rank + 1.0, device=device)).sum().backward()
assert model.module.weight.grad.tolist() == [[6.0] * 3] * 2, model.module.weight.grad
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")  # in one piece: both end at once
"""

DATA_PARALLEL = MODEL.replace("torch.nn.BatchNorm2d(4), ", "") + """
import copy, sys, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)

def train(model, part, scale_parameters=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = (tensor[part].to(next(model.parameters()).device) for tensor in make_batch())
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    with torch.no_grad():
        return model(make_batch()[0].to(images.device)).cpu()

expected = train(make_model(), slice(None))
mine = slice(4 * rank, 4 * rank + 4)
def shard(model):
    fully_shard(model)
    return model
for wrap in (lambda m: DistributedDataParallel(m, device_ids=[rank]),
             lambda m: FullyShardedDataParallel(m, device_id=rank), shard):
    torch.testing.assert_close(train(wrap(make_model().cuda()), mine), expected)
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")  # in one piece: two processes share the pipe
"""


SYNCHRONIZED_NORM = """
import copy, sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU())
images = torch.randn(6, 2, 5, 5)
weights = torch.randn(6, 3, 3, 3)
mine = slice(0, 2) if rank == 0 else slice(2, 6)  # counts differ
synchronized = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)).cuda()
expected, outputs = plain(images), synchronized(images[mine].cuda())
torch.testing.assert_close(outputs.cpu(), expected[mine])
(expected * weights).sum().backward()
(outputs * weights[mine].cuda()).sum().backward()
for ours, theirs in zip(synchronized.parameters(), plain.parameters()):
    dist.all_reduce(ours.grad)
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad, atol=1e-4, rtol=1e-4)
torch.testing.assert_close(synchronized[1].running_var.cpu(), plain[1].running_var)
torch.testing.assert_close(synchronized[1].running_mean.cpu(), plain[1].running_mean)
synchronized.eval(), plain.eval()
torch.testing.assert_close(synchronized(images.cuda()).cpu(), plain(images))
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")
"""


MESH = """
import copy, os, sys, torch, torch.distributed as dist
from datetime import timedelta
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
options.config.max_ctas = 4
dist.init_process_group("nccl", device_id=torch.device("cuda", rank), pg_options=options)
assert copy.deepcopy(options).config.max_ctas == 4
try:
    options.config.ctas = 4
    raise SystemExit("an option that NCCL does not have was taken")
except AttributeError:
    pass
dist.distributed_c10d._set_pg_timeout(timedelta(seconds=99), dist.group.WORLD)

# With a device_id, every group of a mesh is split off the first one.
mesh = init_device_mesh("cuda", (1, 2), mesh_dim_names=("data", "tensor"))
assert (mesh["data"].size(), mesh["tensor"].size(), dist.get_rank(mesh.get_group("tensor"))) == (1, 2, rank)
alone, both = dist.split_group(split_ranks=[[0], [1]]), dist.split_group(split_ranks=[[1, 0]], group_desc="both")
assert dist.get_backend(both) == "nccl" and both.group_desc == "both" and both.size() == 2
for group, expected in ((alone, rank + 1), (both, 3), (dist.new_group([0, 1]), 3), (mesh.get_group("tensor"), 3)):
    tensor = torch.tensor([rank + 1.0], device="cuda")
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == expected, (tensor, expected)
keeps_order = torch.__version__ >= (2, 14)
outside = dist.GroupMember.NON_GROUP_MEMBER if keeps_order else None
assert (dist.split_group(split_ranks=[[0]]) is outside) == (rank == 1)
assert dist.get_rank(both) == (1 - rank if keeps_order else rank)
gathered = [torch.zeros(1, device="cuda") for _ in range(2)]
dist.all_gather(gathered, torch.tensor([rank + 1.0], device="cuda"), group=both)
assert torch.cat(gathered).tolist() == ([2, 1] if keeps_order else [1, 2])

torch.manual_seed(0)
plain = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
split = parallelize_module(copy.deepcopy(plain).cuda(), mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
inputs = torch.randn(4, 8)
expected, outputs = plain(inputs), split(inputs.cuda())
torch.testing.assert_close(outputs.cpu(), expected)
expected.square().sum().backward()
outputs.square().sum().backward()
for ours, theirs in zip(split.parameters(), plain.parameters()):
    torch.testing.assert_close(ours.grad.full_tensor().cpu(), theirs.grad)
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")
"""


NCCL_BY_NAME = """
import sys, torch, torch.distributed as dist
from torch.distributed.distributed_c10d import ProcessGroupNCCL, ProcessGroupNCCL2, ProcessGroupNCCLLazy
dist.init_process_group("nccl")
rank = dist.get_rank()
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
def check(group, kind, expected):
    assert isinstance(group._get_backend(device), kind), group
    tensor = torch.tensor([rank + 1.0], device=device)
    dist.all_reduce(tensor, group=group)
    assert tensor.item() == expected, (group, tensor)

check(dist.group.WORLD, ProcessGroupNCCL2, 3)
check(dist.new_group([1, 0]), ProcessGroupNCCL2, 3)
for name, kind in ("nccl-legacy", ProcessGroupNCCL), ("nccl2", ProcessGroupNCCL2), ("nccl-lazy", ProcessGroupNCCLLazy):
    group = dist.new_group(backend=name)
    assert dist.get_backend(group) == name
    check(group, kind, 3)
    check(dist.split_group(parent_pg=group, split_ranks=[[0], [1]]), kind, rank + 1)
dist.destroy_process_group()
sys.stdout.write(f"rank {rank} passed\\n")
"""


def torchrun(run_python, program, port):
    """Starts the program in two workers, as torchrun does."""
    launcher = f"""
        import runpy, sys
        sys.argv = ["torchrun", "--nproc-per-node", "2", "--master-port", "{port}", {str(program)!r}]
        runpy.run_module("torch.distributed.run", run_name="__main__")
    """
    return run_python(launcher, sim=2, env={"OMP_NUM_THREADS": "1"})


def passes_in_two_processes(run_python, tmp_path, source, port):
    program = tmp_path / "worker.py"
    program.write_text(source)
    result = torchrun(run_python, program, port)
    assert result.status == 0, result.stderr[-3000:]
    assert sorted(line for line in result.stdout.splitlines() if line.startswith("rank")) == ["rank 0 passed",
                                                                                              "rank 1 passed"]


@pytest.mark.parametrize("source", [COLLECTIVES, GLOO, DATA_PARALLEL, SYNCHRONIZED_NORM, MESH],
                         ids=["collectives", "gloo", "data parallel", "synchronized norm", "mesh"])
def test_collectives_join_two_processes(run_python, tmp_path, source, free_port):
    passes_in_two_processes(run_python, tmp_path, source, free_port)


def test_a_program_chooses_among_implementations_of_nccl(run_python, tmp_path, free_port, torch_version):
    if torch_version < (2, 15):
        pytest.skip("torch has a single implementation of NCCL before 2.15")
    passes_in_two_processes(run_python, tmp_path, NCCL_BY_NAME, free_port)


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
