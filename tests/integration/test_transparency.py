"""What a program prints, and how it ends, is the same with and without devsan."""

import re
import subprocess

import pytest

from harness import Runner


@pytest.fixture
def same(run_python):
    """Runs a program plainly, under the bare preload and by `devsan run --quiet`; the three must not differ."""

    def check(source, *args, stdin=None, env=None, timeout=240):
        program = run_python.program(source)
        plain = run_python(program, *args, plain=True, stdin=stdin, env=env, timeout=timeout)
        preload = run_python(program, *args, preload=True, options=["quiet=1"], stdin=stdin, env=env, timeout=timeout)
        launched = run_python(program, *args, options=["--quiet"], stdin=stdin, env=env, timeout=timeout)
        for how, run in (("preload", preload), ("devsan run", launched)):
            assert (run.status, run.stdout, run.stderr) == (plain.status, plain.stdout, plain.stderr), how
        return plain

    return check


# ---- how a program ends

FAILS_IN_MAIN_THREAD = """
    import torch
    a = torch.ones(2, 3)
    print((a @ a.T).sum().item(), flush=True)
    a @ a
"""

FAILS_IN_WORKER_THREAD = """
    import threading, torch
    def work():
        print(torch.ones(3).sum().item(), flush=True)
        torch.ones(2, 3) @ torch.ones(2, 3)
    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    print("the main thread goes on")
"""

FAILS_IN_BACKWARD_OF_A_FUNCTION = """
    import torch
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("backward is broken")
    x = torch.ones(3, requires_grad=True)
    Broken.apply(x).sum().backward()
"""

FAILS_IN_BACKWARD_OF_THE_ENGINE = """
    import torch
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y.sum()
    with torch.no_grad():
        y.add_(1)
    z.backward()
    y.sum().backward()
"""

ENDINGS = {
    "exception in the main thread": (FAILS_IN_MAIN_THREAD, 1),
    "exception in a worker thread": (FAILS_IN_WORKER_THREAD, 0),
    "exception in a custom Function's backward": (FAILS_IN_BACKWARD_OF_A_FUNCTION, 1),
    "exception in the autograd engine": (FAILS_IN_BACKWARD_OF_THE_ENGINE, 1),
    "sys.exit(3)": ("import sys, torch; print(torch.ones(2)); sys.exit(3)", 3),
    "sys.exit with words": ("import sys, torch; torch.ones(2); sys.exit('not today')", 1),
    "os._exit(7)": ("import os, torch; print(torch.ones(2), flush=True); os._exit(7)", 7),
    "os.abort": ("import os, torch; print(torch.ones(2), flush=True); os.abort()", 134),
    "segmentation fault": ("import ctypes, torch; print(torch.ones(2), flush=True); ctypes.string_at(0)", 139),
    "SIGKILL": ("import os, torch; print(torch.ones(2), flush=True); os.kill(os.getpid(), 9)", 137),
    "SIGTERM": ("import os, torch; print(torch.ones(2), flush=True); os.kill(os.getpid(), 15)", 143),
    "SIGTERM handler": (
        "import os, signal, sys, torch\n"
        "def handler(number, frame):\n"
        "    print('asked to stop,', torch.arange(3).sum().item())\n"
        "    sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, handler)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "signal.pause()\n",
        5,
    ),
    "Ctrl-C": (
        "import os, signal, torch\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        "finally:\n"
        "    print('cleaning up', torch.ones(2).sum().item())\n",
        130,
    ),
    "output from atexit": (
        "import atexit, torch\n"
        "atexit.register(lambda: print('goodbye', torch.ones(4).sum().item()))\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "atexit.register(lambda: print('gradient', x.grad))\n"
        "(x * 3).sum().backward()\n",
        0,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_program_ends_as_without_devsan(same, ending):
    source, status = ENDINGS[ending]
    assert same(source).status == status


def test_faulthandler_tells_the_same_stack(run_python):
    program = run_python.program("""
        import ctypes, faulthandler, torch
        faulthandler.enable()
        ctypes.string_at(0)
    """)

    def stack(**how):
        result = run_python(program, **how)
        return result.status, re.sub(r"thread 0x\w+", "thread", result.stderr)

    plain = stack(plain=True)
    assert plain[0] == 139 and "Segmentation fault" in plain[1] and "string_at" in plain[1]
    assert stack(preload=True, options=["quiet=1"]) == plain
    assert stack(options=["--quiet"]) == plain


def test_closed_pipe_ends_the_program_as_without_devsan(devsan, python, run_python):
    program = run_python.program("""
        import torch
        for number in range(100000):
            print(torch.tensor(number).item())
    """)

    def first_lines(prefix):
        script = f"{prefix}'{python}' '{program}' | head -n 3; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=run_python.scratch,
                              env=run_python.environment(), timeout=120)
        return done.stdout, done.stderr

    plain = first_lines("")
    assert plain[0] == "0\n1\n2\n1\n" and "BrokenPipeError" in plain[1]
    assert first_lines(f"LD_PRELOAD='{run_python.library}' DEVSAN_OPTIONS=quiet=1:out=preload ") == plain
    assert first_lines(f"'{devsan}' run --quiet --out launched -- ") == plain


# ---- what a program computes

GENERATOR = """
    import torch
    torch.manual_seed(7)
    def batches(count):
        for index in range(count):
            yield torch.randn(4, 8, generator=torch.Generator().manual_seed(index))
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    for batch in batches(5):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), net[0].weight.grad.norm().item().hex())
"""

READS_STDIN = """
    import sys, torch
    for line in sys.stdin:
        print(torch.tensor([float(word) for word in line.split()]).sum().item())
"""

LOADER = """
    import torch
    class Squares(torch.utils.data.Dataset):
        def __len__(self):
            return 12
        def __getitem__(self, index):
            return torch.tensor(index).square(), torch.full((2,), float(index))
    if __name__ == "__main__":
        import sys
        loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1])
        for squares, rows in loader:
            print(squares.tolist(), rows.sum().item())
"""

FAILING_LOADER = """
    import torch
    class Broken(torch.utils.data.Dataset):
        def __len__(self):
            return 2
        def __getitem__(self, index):
            raise KeyError(index)
    if __name__ == "__main__":
        next(iter(torch.utils.data.DataLoader(Broken(), num_workers=1)))
"""

SUBPROCESSES = """
    import subprocess, sys, torch
    print(torch.ones(3).sum().item(), flush=True)
    child = "import sys, torch; print(torch.arange(4).sum().item()); sys.exit(9)"
    print(subprocess.run([sys.executable, "-c", child]).returncode)
    print(subprocess.check_output(["echo", "a program without torch"], text=True), end="")
    print(subprocess.run(["sh", "-c", "echo to stderr >&2; kill -TERM $$"]).returncode)
"""

SUBCLASSES = """
    import torch
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})
    x = torch.ones(2, 2).as_subclass(Logged)
    print(type((x + 1) @ x).__name__)

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            print(func)
            inner = [arg.inner if isinstance(arg, Wrapper) else arg for arg in args]
            return Wrapper(func(*inner, **(kwargs or {})))
        def __repr__(self):
            return f"Wrapper({self.inner})"
    w = Wrapper(torch.arange(3.0))
    print((w * 2 + w).inner)
    print(torch.sin(w).inner)
"""

FUNCTIONAL = """
    import torch
    from torch.func import grad, hessian, jacrev, vmap
    x = torch.linspace(0, 1, 5)
    print(vmap(lambda v: (v * 2).sin())(x))
    print(grad(lambda v: (v ** 3).sum())(x))
    print(vmap(grad(lambda v: v.exp() * v))(x))
    print(hessian(lambda v: (v ** 4).sum())(x[:2]))
    print(jacrev(lambda v: torch.stack([v.sum(), v.prod()]))(x[1:3]))
    print(vmap(lambda v: torch.rand(2) * 0 + v, randomness="different")(x[:2]))
"""

UNUSUAL_TENSORS = """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        fake = torch.empty(1024, 1024, device="cpu")
        print((fake @ fake).shape, type(fake + 1).__name__)
    meta = torch.empty(3, 4, device="meta")
    print((meta @ meta.T).shape, meta.sum().device)
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    print([part.shape for part in (nested * 2).unbind()])
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    print((jagged + 1).values().sum().item(), torch.nested.to_padded_tensor(jagged, 0.0).shape)
    sparse = torch.eye(3).to_sparse()
    print((sparse @ torch.ones(3, 1)).T, sparse.coalesce().indices().tolist(), torch.eye(3).to_sparse_csr().sum().item())
    quantized = torch.quantize_per_tensor(torch.linspace(0, 1, 4), 0.1, 0, torch.quint8)
    print(quantized.int_repr(), quantized.dequantize())
    print(torch.view_as_complex(torch.ones(2, 2)).conj().imag, torch.ones(2).neg().is_neg())
"""

UNDEFINED_GRADIENTS = """
    import torch
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x * 2, y * 3
        @staticmethod
        def backward(ctx, gx, gy):
            print("undefined:", gx is None, gy is None)
            return gx, None
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    Half.apply(x, y)[0].sum().backward()
    print(x.grad, y.grad)
    z = torch.ones(2, requires_grad=True)
    print(torch.autograd.grad((x * 2).sum(), [x, z], allow_unused=True))
    print(torch.autograd.grad((x ** 3).sum(), x, create_graph=True))
"""

SCRIPTED = """
    import torch
    @torch.jit.script
    def steps(x: torch.Tensor, count: int) -> torch.Tensor:
        for _ in range(count):
            if bool(x.sum() < 100):
                x = x * 2 + 1
        return x
    print(steps(torch.ones(3), 5))
    traced = torch.jit.trace(torch.nn.Linear(2, 1).requires_grad_(False), torch.ones(1, 2))
    print(traced.graph.findNode("aten::linear") is not None, len(list(traced.graph.nodes())))
    @torch.jit.script
    def fails(x):
        return x @ x
    try:
        fails(torch.ones(2, 3))
    except RuntimeError as error:
        print(error)
"""

EAGER_COMPILE = """
    import torch
    from torch._dynamo.utils import counters
    graphs = []
    def backend(module, inputs):
        graphs.append(len(list(module.graph.nodes)))
        return module.forward
    @torch.compile(backend=backend)
    def step(x, y):
        x = torch.nn.functional.layer_norm(x @ y, (4,)).relu()
        if x.amax() > 1.2:
            return x.cos()
        return x.sin()
    for size in (3, 3, 5, 7):
        print(step(torch.arange(size * 4.0).view(size, 4), torch.eye(4).cumsum(0)).sum().item().hex())
    print(graphs, dict(counters["stats"]), dict(counters["graph_break"]))
"""

PROGRAMS = {
    "training loop": (GENERATOR, ()),
    "DataLoader with forked workers": (LOADER, ("fork",)),
    "DataLoader with spawned workers": (LOADER, ("spawn",)),
    "DataLoader with workers of a fork server": (LOADER, ("forkserver",)),
    "subprocesses": (SUBPROCESSES, ()),
    "tensor subclasses": (SUBCLASSES, ()),
    "torch.func": (FUNCTIONAL, ()),
    "fake, meta, nested, sparse and quantized tensors": (UNUSUAL_TENSORS, ()),
    "undefined gradients": (UNDEFINED_GRADIENTS, ()),
    "TorchScript": (SCRIPTED, ()),
    "torch.compile with a backend of its own": (EAGER_COMPILE, ()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_the_same(same, name):
    source, args = PROGRAMS[name]
    # CPython's fork server now and then reports a semaphore of a worker that ends at the same moment as leaked.
    plain = same(source, *args, env={"PYTHONWARNINGS": "ignore:resource_tracker"})
    assert plain.status == 0, plain.stderr
    assert plain.stdout


def test_standard_input_reaches_the_program(same):
    assert same(READS_STDIN, stdin="1 2\n3 4 5\n").stdout == "3.0\n12.0\n"


def test_exception_of_a_loader_worker_is_told_the_same(same):
    plain = same(FAILING_LOADER)
    assert plain.status == 1 and "KeyError: Caught KeyError in DataLoader worker process 0." in plain.stderr


INDUCTOR = """
    import torch
    from torch._dynamo.utils import counters
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    compiled = torch.compile(net)
    for size in (4, 4, 6):
        loss = compiled(torch.ones(size, 8)).square().sum()
        loss.backward()
        print(loss.item().hex(), net[0].weight.grad.sum().item().hex())
    print(dict(counters["stats"]), dict(counters["graph_break"]))
"""


def test_inductor_makes_the_same_graphs_and_numbers(run_python: Runner, tmp_path):
    """Each way compiles for itself: what a shared cache gave would not have been compiled under devsan."""
    program = run_python.program(INDUCTOR)

    def run(name, **how):
        return run_python(program, env={"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"inductor-{name}")}, timeout=400, **how)

    plain = run("plain", plain=True)
    if plain.status and ("Python.h" in plain.stderr or "InvalidCxxCompiler" in plain.stderr):
        pytest.skip("inductor cannot compile here: a C++ compiler and Python's headers are needed")
    assert plain.status == 0, plain.stderr
    launched = run("launched", options=["--quiet"])
    assert (launched.status, launched.stdout) == (plain.status, plain.stdout)
    log_prefix = re.compile(r"^[VIWE]\d{4} [\d:.]+ \d+ ", re.M)  # torch's logs begin with the time and the pid
    assert log_prefix.sub("", launched.stderr) == log_prefix.sub("", plain.stderr)
