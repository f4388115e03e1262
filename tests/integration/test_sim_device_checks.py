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


def without_place(message):
    """The folder in which torch was built, and the line, are those of one release."""
    return message and re.sub(r'"/[^"]*/(aten/[^"]+)":\d+', r'"\1"', message)


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
    "torch.randn(2, device='cuda', generator=torch.Generator())":
        "Expected a 'cuda' device type for generator but found 'cpu'",
}

RUNS = [
    "g * h0", "h0 * g", "g + 1", "torch.tensor(2.0) - g", "g[j]", "g.index_put_((j,), h0)", "torch.where(g > 0, g, h0)",
    "g.masked_fill(g > 0, h0)", "g.fill_(h0)", "h.fill_(g0)", "g.copy_(h)", "h.copy_(g)", "h[0].copy_(g[0])",
    "torch._foreach_mul([g, h], 2.0)", "torch._foreach_norm([g, h])", "torch.pow(g, h0)", "g == h0",
    "torch.addcmul(g, g, h0)", "torch.lerp(g, g, h0)", "g.floor_divide_(h0)",
    "torch.clamp_max(g, h0, out=torch.empty_like(g))",
]

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

    expressions = [*RAISES, *RUNS]
    result = Runner(devsan, python, tmp_path_factory.mktemp("checks"))(PROGRAM, json.dumps(expressions), sim=2)
    assert result.status == 0, result.stderr
    return dict(zip(expressions, json.loads(result.stdout.splitlines()[-1])))


@pytest.mark.parametrize("expression", RAISES)
def test_a_mixture_that_cuda_refuses_raises_its_message(answers, expression):
    assert without_place(answers[expression]) == RAISES[expression]


@pytest.mark.parametrize("expression", RUNS)
def test_a_mixture_that_cuda_takes_runs(answers, expression):
    assert answers[expression] is None
