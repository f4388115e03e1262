"""Which mixtures of devices raise on simulated devices, and in which words: those of PyTorch on CUDA."""

import json
import re

import pytest

ITERATOR = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def wrapper(argument, where, others, method):
    return (f"Expected all tensors to be on the same device, but got {argument} is on {where}, different from other "
            f"tensors on {others} (when checking argument in method wrapper_CUDA_{method})")


def loop(position):
    """What kernels assert that take no number from the CPU."""
    return ('iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "aten/src/ATen/native/cuda/Loops.cuh", please report a '
            f"bug to PyTorch. argument {position}: expected a CUDA device but found cpu")


NO_KERNEL = "Could not run 'aten::{}' with arguments from the 'CUDA' backend."
CONDITION = ("Expected {} to be true, but got false.  (Could this error message be improved?  If so, please report an "
             "enhancement request to PyTorch.)")


def without_place(message):
    """The folder in which torch was built, the line, and which backends have a kernel, are those of one release."""
    message = message and re.sub(r'"/[^"]*/(aten/[^"]+)":\d+', r'"\1"', message)
    is_absent = message is not None and message.startswith("Could not run")
    return message.partition(" This could be because")[0] if is_absent else message


# The operands are g (3x3 on cuda:0), h (3x3 on the CPU), g0 and h0 (0-dim), i and j (indices on cuda:0, on the CPU),
# k0 (a 0-dim index on the CPU).
RAISES = {
    "h.mul_(g0)": ITERATOR,
    "g + h": ITERATOR,
    "h + g": ITERATOR,
    "g0 + h": ITERATOR,
    "g + g.to('cuda:1')": ITERATOR.replace("cpu", "cuda:1"),
    "torch.add(h, h, out=g)": ITERATOR,
    "torch.where(g > 0, h, g)": ITERATOR,
    "torch.lerp(g, h, 0.5)": ITERATOR,
    "torch.lerp(g, h0, 0.5)": loop(2),
    "torch.lerp(h0, g, 0.5)": loop(1),
    "g.lerp_(h0, 0.5)": loop(2),
    "torch.lerp(g, h0, g)": loop(2),
    "torch.lerp(g, h0, 0.5, out=torch.empty_like(g))": loop(2),
    "torch.nn.functional.smooth_l1_loss(g0, h0)": loop(2),
    "torch.nn.functional.mse_loss(h0, g0)": ITERATOR.replace("cuda:0 and cpu", "cpu and cuda:0"),
    "torch.addcmul(h0, g, g)":
        "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors.",
    "g.addcmul_(h0, g)":
        "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA tensors. However, CPU "
        "Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms.",
    "torch.addcdiv(g, h0, g)": ITERATOR,
    "torch.addcdiv(g, h0, g, out=torch.empty_like(g))": ITERATOR,
    "torch.clamp(g, min=h0, out=torch.empty_like(g))": ITERATOR,
    "h0.floor_divide_(g0)": ITERATOR,
    "h0.add_(g0)": ITERATOR,
    "k0.__ilshift__(i[0])": ITERATOR,
    "torch.nn.functional.binary_cross_entropy(g.sigmoid(), h.sigmoid())": ITERATOR,
    "g.masked_fill_(h > 0, 0.0)":
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
    "h[i]": "indices should be either on cpu or on the same device as the indexed tensor (cpu)",
    "g @ h": wrapper("mat2", "cpu", "cuda:0", "mm"),
    "h @ g": wrapper("mat2", "cuda:0", "cpu", "mm"),
    "torch.nn.functional.linear(h, g, g[0])": wrapper("mat1", "cpu", "cuda:0", "addmm"),
    "torch.cat([g, h])": wrapper("tensors", "cpu", "cuda:0", "cat"),
    "torch.stack([h0, g0])": wrapper("tensors", "cuda:0", "cpu", "cat"),
    "g.gather(0, j[:, None])": wrapper("index", "cpu", "cuda:0", "gather"),
    "torch.nn.functional.embedding(j, g)": wrapper("index", "cpu", "cuda:0", "_index_select"),
    "torch.clamp(g, min=h0)": wrapper("min", "cpu", "cuda:0", "clamp_Tensor"),
    "torch.nn.functional.cross_entropy(g, j)": wrapper("target", "cpu", "cuda:0", "nll_loss_forward"),
    "torch.nn.functional.conv2d(g[None, None], h[None, None])":
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    "torch.nn.functional.conv2d(h[None, None], g[None, None])":
        wrapper("weight", "cuda:0", "cpu", "__slow_conv2d_forward"),
    "torch.nn.functional.conv3d(h[None, None, None], g[None, None, None])": NO_KERNEL.format("slow_conv3d_forward"),
    "torch.nn.functional.conv2d(g[None, None], h0)": "weight should have at least three dimensions",
    "torch.nn.functional.batch_norm(g[None], h[0], g[0], training=True)":
        wrapper("running_mean", "cpu", "cuda:0", "_native_batch_norm"),
    "torch.nn.functional.batch_norm(g[None], g[0], g[0], h[0], g[0])":
        wrapper("weight", "cpu", "cuda:0", "_cudnn_batch_norm"),
    "torch.nn.functional.batch_norm(g, g[0], g[0], h[0], g[0])":
        wrapper("weight", "cpu", "cuda:0", "_native_batch_norm"),
    "torch.nn.functional.rms_norm(g, (3,), h[0])": wrapper("weight", "cpu", "cuda:0", "__fused_rms_norm"),
    "torch._chunk_cat([g, h], 0, 2)": wrapper("tensors", "cpu", "cuda:0", "__chunk_cat"),
    "torch.cumsum(g, 0, out=h)": "Expected out tensor to have device cuda:0, but got cpu instead",
    "torch.max(g, out=h0)": CONDITION.format("self.device() == out.device()"),
    "torch.mode(g, out=(h[0], i))": "expected device 'cuda:0' but got 'cpu' for values output",
    "torch.searchsorted(g[0], 1.0, sorter=j)":
        "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor device "
        "type cpu and input value tensor device type cuda:0",
    "torch.segment_reduce(g[0], 'sum', lengths=torch.tensor([3]))":
        CONDITION.format("data.get_device() == lengths_value.get_device()"),
    "g0.logical_and_(h[0])": "output with shape [] doesn't match the broadcast shape [3]",
    "h0.index_put_((i,), g0)": "too many indices for tensor of dimension 0 (got 1)",
    "g.index_put_((i,), h[0, :2])":
        "shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [3, 3]",
    "g.index_put_((i,), h[0], accumulate=True)": "expected device cuda:0 but got device cpu for value tensor",
    "g.index_fill_(0, i, h[0])":
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).",
    "torch.randn(2, device='cuda', generator=torch.Generator())":
        "Expected a 'cuda' device type for generator but found 'cpu'",
}

RUNS = [
    "g * h0", "h0 * g", "g + 1", "torch.tensor(2.0) - g", "g[j]", "g.index_put_((j,), h0)", "torch.where(g > 0, g, h0)",
    "g.masked_fill(g > 0, h0)", "g.fill_(h0)", "h.fill_(g0)", "g.copy_(h)", "h.copy_(g)", "h[0].copy_(g[0])",
    "torch._foreach_mul([g, h], 2.0)", "torch._foreach_norm([g, h])", "torch.pow(g, h0)", "g == h0",
    "torch.addcmul(g, g, h0)", "torch.lerp(g, g, h0)", "g.floor_divide_(h0)",
    "torch.clamp_max(g, h0, out=torch.empty_like(g))", "torch.bernoulli(g, out=h)", "g.index_fill_(0, i, h0)",
    "g.index_put_((g > 0,), h[0, :1])", "torch.rand_like(g[:0], generator=torch.Generator())",
]

# With everything on one device: what the kernels for CUDA refuse, and the CPU's take or refuse in other words.
REFUSES = {
    "torch.histogram(g)": NO_KERNEL.format("histogram.bin_ct"),
    "torch.narrow_copy(g, 0, 0, 1, out=g[:1])": NO_KERNEL.format("narrow_copy.out"),
    "torch.ops.aten._sparse_mm_reduce_impl(g.to_sparse_csr(), g, 'sum')":
        NO_KERNEL.format("_sparse_mm_reduce_impl").replace("CUDA", "SparseCsrCUDA"),
    "torch.trace(g[0])": "expected a matrix",
    "g[0].addr_(g[0], g[0])": "2D tensor expected, got 1D tensor for input",
    "g[0].masked_fill_(g > 0, 0)":
        "expand(CUDABoolType{[3, 3]}, size=[3]): the number of sizes provided (1) must be greater or equal to the "
        "number of dimensions in the tensor (2)",
    "torch.nn.functional.max_pool3d(g0, 2)": "Dimension specified as -4 but tensor has no dimensions",
    "torch.native_batch_norm(g[None], g[0], g[0], g[0, :1], g[0], True, 0.1, 1e-5)":
        "output with shape [1] doesn't match the broadcast shape [3]",
    "torch.ops.aten._batch_norm_with_update(g[None], g[0, :1], g[0], g[0], g[0], 0.1, 1e-5)":
        "Expected tensor for argument #2 'weight' to have 3 elements; but it actually has 1 elements (while checking "
        "arguments for cudnn_batch_norm)",
    "g.index_put_((i[:2],), g, accumulate=True)":
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  Target "
        "sizes: [2, 3].  Tensor sizes: [3, 3]",
    "torch.nn.functional.max_unpool2d(g[None], i[None], 1)":
        "Expected shape of indices to be: [1, 3, 3] but got: [1, 3]",
}

# What is found out on the device: `far` and `target` are out of range.
ASSERTED = [
    "g[far]", "g.index_put((far,), g[0] + 1)", "g.index_select(0, far)", "g.gather(0, far[:, None])",
    "g.scatter(0, far[:, None], 1.0)", "g.scatter_add(0, far[:, None], g)",
    "g.scatter_reduce(0, far[:, None], g, 'sum')",
    "g.index_add(0, far, g[:1])", "g.index_copy(0, far, g[:1])", "g.index_fill(0, far, 1.0)", "g.take(far + 9)",
    "g.put(far + 9, g[0, :1] + 1)", "g.masked_scatter(g > 0, g[0, :2])", "f.embedding(far, g)",
    "f.nll_loss(g, target)", "f.nll_loss(g[None, :, :, None], target[None, :, None])", "f.multi_margin_loss(g, target)",
    "f.binary_cross_entropy(g + 1, g)", "f.embedding_bag(i, g, offsets=i * 5)", "torch._assert_async(g[0, 0] - 1)",
]

ASSERTED_PROGRAM = """
import json, sys, torch, devsan_simulation
from torch.nn import functional as f
i = torch.tensor([0, 1, 2], device="cuda")
for expression in json.loads(sys.argv[1]):
    g, far = torch.ones(3, 3, device="cuda"), torch.tensor([5], device="cuda")
    target = torch.tensor([0, 1, 7], device="cuda")
    try:
        eval(expression)
        print("passed")
    except Exception as error:
        print(type(error).__name__, str(error).partition("\\n")[0])
    devsan_simulation.restore_context()
"""

ASSERTS = """
import torch
source = torch.ones(3, device="cuda")
index = torch.tensor(5, device="cuda")
for use in (lambda: source.take(index), torch.cuda.synchronize, lambda: source + 1, source.sum):
    try:
        use()
        print("passed")
    except torch.AcceleratorError as error:
        print(str(error).splitlines()[:2])
print(torch.ones(2) + 1)
"""

PROGRAM = """
import json, sys, torch
answers = []
for expression in json.loads(sys.argv[1]):
    names = dict(torch=torch, g=torch.ones(3, 3, device="cuda"), h=torch.ones(3, 3))
    names.update(g0=names["g"].sum(), h0=torch.tensor(3.0), j=torch.tensor([0, 1, 2]))
    names.update(i=names["j"].cuda(), k0=torch.tensor(1))
    try:
        eval(expression, names)
        answers.append(None)
    except Exception as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(devsan, python, tmp_path_factory):
    from harness import Runner

    expressions = [*RAISES, *RUNS, *REFUSES]
    result = Runner(devsan, python, tmp_path_factory.mktemp("checks"))(PROGRAM, json.dumps(expressions), sim=2)
    assert result.status == 0, result.stderr
    return dict(zip(expressions, json.loads(result.stdout.splitlines()[-1])))


@pytest.mark.parametrize("expression", RAISES)
def test_a_mixture_that_cuda_refuses_raises_its_message(answers, expression):
    assert without_place(answers[expression]) == RAISES[expression]


@pytest.mark.parametrize("expression", RUNS)
def test_a_mixture_that_cuda_takes_runs(answers, expression):
    assert answers[expression] is None


@pytest.mark.parametrize("expression", REFUSES)
def test_operands_that_kernels_for_cuda_refuse_raise_their_message(answers, expression):
    assert without_place(answers[expression]) == REFUSES[expression]


def test_an_index_that_is_found_out_on_the_device_ends_all_work_on_it(run_python):
    result = run_python(ASSERTS, sim=1)
    assert result.status == 0, result.stderr
    first, *others, host = result.stdout.splitlines()
    assert "CUDA error: device-side assert triggered" in first and "tried to access index 5" in first
    assert len(others) == 3 and all("CUDA error: device-side assert triggered" in line for line in others)
    assert host == "tensor([2., 2.])"


def test_what_kernels_for_cuda_assert_on_the_device_is_no_error_of_an_index(run_python):
    result = run_python(ASSERTED_PROGRAM, json.dumps(ASSERTED), sim=1)
    assert result.status == 0, result.stderr
    told = dict(zip(ASSERTED, result.stdout.splitlines(), strict=True))
    assert {expression: words for expression, words in told.items()
            if words != "AcceleratorError CUDA error: device-side assert triggered"} == {}
