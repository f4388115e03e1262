"""Captures CUDA graphs in the ways that trainings do, and says what each replay computed, or how its capture failed."""

import torch

device = torch.device("cuda", 0)


def beside(work):
    """Runs work on another stream first, as a capture wants it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)


def forward_alone():
    source = torch.ones(4, device=device)
    beside(lambda: source * 2 + 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = source * 2 + 1
    source.fill_(3)
    graph.replay()
    return result.tolist()


def graphed_module():
    module = torch.nn.Linear(64, 64).to(device)
    example = torch.randn(8, 64, device=device, requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(module, (example,))
    output = graphed(torch.ones(8, 64, device=device, requires_grad=True))
    output.sum().backward()
    return [tuple(output.shape), round(module.weight.grad.sum().item(), 3)]


def whole_step():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    batch = torch.randn(8, 64, device=device)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    beside(step)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(5):
        graph.replay()
    torch.cuda.synchronize()
    return round(sum(parameter.sum().item() for parameter in model.parameters()), 3)


def copy_from_pinned_memory():
    host = torch.zeros(4).pin_memory()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = host.to(device, non_blocking=True) + 1
    host.fill_(5)
    graph.replay()
    return result.tolist()


def noise():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        numbers = torch.rand(1000, device=device)
    graph.replay()
    first = numbers.clone()
    graph.replay()
    return [bool((first != numbers).any()), bool(0.4 < numbers.mean().item() < 0.6)]


torch.manual_seed(0)
for capture in (forward_alone, graphed_module, whole_step, copy_from_pinned_memory, noise):
    try:
        print(capture.__name__, capture())
    except Exception as error:
        print(capture.__name__, f"{type(error).__name__}: {str(error).splitlines()[0]}")
        torch.cuda.set_stream(torch.cuda.default_stream())  # a capture that failed leaves its own stream selected
