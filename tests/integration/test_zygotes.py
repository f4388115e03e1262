"""A program in a fork of a process that has imported torch finds what a program that is started finds."""

import pytest

from harness import Runner

SURROUNDINGS = """
    import inspect, json, os, signal, sys, threading
    import torch
    main = sys.modules["__main__"]
    print(json.dumps({
        "arguments": [sys.argv, sys.orig_argv, sys.flags.isolated, sys.path],
        "main": [__name__, __file__, sorted(set(vars(main)) - {"main"}), main.__spec__ is None],
        "frames": [frame.filename for frame in inspect.stack()],
        "process": [os.getcwd(), sorted(os.listdir("/proc/self/fd")), threading.current_thread().name],
        "environment": {k: v for k, v in os.environ.items() if k not in ("DEVSAN_OPTIONS", "PYTEST_CURRENT_TEST")},
        "streams": [[s.isatty(), s.line_buffering, s.encoding, s.errors] for s in (sys.stdin, sys.stdout, sys.stderr)],
        "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)],
    }, indent=1))
"""

ENDS = {
    "its last line": "print('done')",
    "a status": "import sys; sys.exit(3)",
    "words": "import sys; sys.exit('words')",
    "an exception": "def f(): raise KeyError(1)\nf()",
    "a syntax error": "x = = 1",
    "an interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "a signal": "import os, signal; print('unseen'); os.kill(os.getpid(), signal.SIGKILL)",
    "exit handlers": "import atexit, sys; atexit.register(print, 'at exit'); print('to stderr', file=sys.stderr)",
}


@pytest.fixture
def both(devsan, python, tmp_path):
    """Runs a program in a fork, and started under the bare preload, which has no summary at the end either."""

    def run(source, *args):
        runner = Runner(devsan, python, tmp_path)
        program = runner.program(source)
        return runner.fork(program, list(args), ["sim=1"], 60), runner(program, *args, sim=1, preload=True)

    return run


def test_a_fork_has_the_surroundings_of_a_start(both):
    fork, start = both(SURROUNDINGS)
    assert (fork.status, start.status) == (0, 0), fork.stderr
    assert fork.stdout == start.stdout and fork.stderr == start.stderr


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS)
def test_a_fork_ends_as_a_start(both, source):
    fork, start = both("import torch\n" + source)
    assert (fork.status, fork.stdout, fork.stderr) == (start.status, start.stdout, start.stderr)


MISTAKE = """
    import sys, torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(3)
            self.layer = torch.nn.Linear(3, 3)
        def forward(self, x):
            return self.layer(x) * self.scale
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        x = torch.ones(3, device="cuda")
        net.layer(x).sum().backward()
        optimizer.step()
    net(x)
"""


def without_identity(value, names=("pid", "thread", "time")):
    if isinstance(value, dict):
        return {key: without_identity(part) for key, part in value.items() if key not in names}
    return [without_identity(part) for part in value] if isinstance(value, list) else value


def test_a_fork_has_the_report_of_a_start(both):
    fork, start = both(MISTAKE)
    assert fork.stderr.replace(str(fork.out), "OUT").count("RuntimeError") == 1
    assert without_identity(fork.findings) == without_identity(start.findings) != []
    ours, theirs = fork.report["run"], start.report["run"]
    assert [ours[key] for key in ("steps", "optimizer_steps")] == [theirs[key] for key in ("steps", "optimizer_steps")]
    assert ours["processes"][0]["operators"] == theirs["processes"][0]["operators"]


def test_one_program_leaves_nothing_to_the_next(devsan, python, tmp_path):
    runner = Runner(devsan, python, tmp_path)
    first = runner.program("""
        import builtins, os, sys, torch
        builtins.left = torch.left = os.environ["LEFT"] = "left"
        sys.modules["left"] = torch
        torch.ones(2, device="cuda") + 1
        torch.set_default_dtype(torch.float64)
    """)
    second = runner.program("""
        import builtins, os, sys, torch
        print([hasattr(builtins, "left"), hasattr(torch, "left"), "LEFT" in os.environ, "left" in sys.modules])
        print(torch.get_default_dtype(), len(sys.argv))
        torch.ones(2) + 1
    """)
    assert runner.fork(first, ["a", "b"], ["sim=1"], 60).status == 0
    done = runner.fork(second, [], ["sim=1"], 60)
    assert done.stdout == "[False, False, False, False]\ntorch.float32 1\n", done.stderr
    assert [process["trace"] for process in done.report["run"]["processes"]] == [str(p) for p in done.out.iterdir()]
