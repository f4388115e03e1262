"""Which mixtures of devices raise on simulated devices, and in which words: those of PyTorch on CUDA."""

import json

import pytest

ITERATOR = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def wrapper(argument, where, others, method):
    return (f"Expected all tensors to be on the same device, but got {argument} is on {where}, different from other "
            f"tensors on {others} (when checking argument in method wrapper_CUDA_{method})")


# The operands are g (3x3 on cuda:0), h (3x3 on the CPU), g0 and h0 (0-dim), i and j (indices on cuda:0, on the CPU).
RAISES = {
    "h.mul_(g0)": ITERATOR,
    "g + h": ITERATOR,
    "h + g": ITERATOR,
    "g0 + h": ITERATOR,
    "g + g.to('cuda:1')": ITERATOR.replace("cpu", "cuda:1"),
    "torch.add(h, h, out=g)": ITERATOR,
    "torch.where(g > 0, h, g)": ITERATOR,
    "torch.lerp(g, h, 0.5)": ITERATOR,
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
]

PROGRAM = """
import json, sys, torch
answers = []
for expression in json.loads(sys.argv[1]):
    names = dict(torch=torch, g=torch.ones(3, 3, device="cuda"), h=torch.ones(3, 3))
    names.update(g0=names["g"].sum(), h0=torch.tensor(3.0), j=torch.tensor([0, 1, 2]))
    names["i"] = names["j"].cuda()
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
    assert answers[expression] == RAISES[expression]


@pytest.mark.parametrize("expression", RUNS)
def test_a_mixture_that_cuda_takes_runs(answers, expression):
    assert answers[expression] is None
