"""A process killed at any moment leaves a trace with every finding that it had itself printed."""

import json
import shutil
import subprocess

from harness import view

RUNS = 100

# One process imports torch and then forks a child a run. Each child makes findings at lines of its own and says so
# on a pipe after each; it is killed after its share of the time that an undisturbed child takes. What it had said by
# then is printed, so that the test knows what the trace must hold.
FORK_SERVER = """
    import json, os, signal, sys, time, torch

    LINES = 12
    source = "def meet(a, b, c):\\n" + "".join(
        f"    try: a + b[:{n + 2}]\\n    except RuntimeError: yield {3 * n + 2}\\n    (c * {n}).sum()\\n" for n in range(LINES))
    namespace = {}
    path = sys.argv[2]
    open(path, "w").write(source)
    exec(compile(source, path, "exec"), namespace)

    def child(fd):
        a, b, c = torch.ones(1, device="cuda"), torch.ones(LINES + 2), torch.ones(64, device="cuda")
        os.write(fd, b"started\\n")
        for line in namespace["meet"](a, b, c):
            os.write(fd, f"{line}\\n".encode())
        os.write(fd, b"ending\\n")

    def run(delay):
        receive, send = os.pipe()
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.close(receive)
            child(send)
            sys.exit(0)
        os.close(send)
        if delay is not None:
            time.sleep(max(0.0, began + delay - time.monotonic()))
            os.kill(pid, signal.SIGKILL)
        said = b""
        while chunk := os.read(receive, 65536):
            said += chunk
        os.close(receive)
        status = os.waitpid(pid, 0)[1]
        return {"pid": pid, "said": said.decode().split("\\n")[:-1], "seconds": time.monotonic() - began,
                "killed": os.WIFSIGNALED(status)}

    runs = int(sys.argv[1])
    whole = [run(None) for _ in range(3)]
    longest = sorted(r["seconds"] for r in whole)[1]
    print(json.dumps({"whole": whole, "killed": [run(longest * n / runs) for n in range(runs)]}))
"""


def lines_found(report, source):
    places = [f["where"] for f in report["findings"] if f["raised"]]
    return {place["line"] for place in places if place and place["file"] == source}


def test_killed_runs_lose_no_finding_that_they_printed(run_python, devsan, tmp_path):
    source = str(tmp_path / "meet.py")
    # Small files: a hundred of the default size would need 1.6 GiB.
    result = run_python(FORK_SERVER, RUNS, source, sim=1, options=["--quiet"], timeout=600,
                        env={"DEVSAN_OPTIONS": "trace_size=2M"})
    assert result.status == 0, result.stderr
    told = json.loads(result.stdout)

    for run in told["whole"]:
        assert run["said"][0] == "started" and run["said"][-1] == "ending" and len(run["said"]) == 14
    assert any(run["killed"] for run in told["killed"])

    checked = 0
    for run in told["whole"] + told["killed"]:
        printed = {int(word) for word in run["said"] if word.isdigit()}
        traces = list(result.out.glob(f"rank*.{run['pid']}*.devsan"))
        assert len(traces) <= 1
        if not run["said"]:  # killed before its first operator made it a file, or while it was being made
            views = [subprocess.run([devsan, "view", trace, "--json"], capture_output=True) for trace in traces]
            assert all(done.returncode in (0, 1) for done in views), views
            continue
        assert traces, run
        found = lines_found(view(devsan, traces[0]), source)
        assert printed <= found, f"{run} printed what its trace lacks"
        checked += bool(printed)
    assert checked > RUNS // 10, "too few runs lived long enough to make a finding"

    together = lines_found(result.report, source)
    assert together == {int(word) for word in told["whole"][0]["said"] if word.isdigit()}


def test_trace_of_a_killed_run_can_be_cut_anywhere(run_python, devsan, tmp_path):
    """What a copy interrupted half-way leaves is read as far as it goes, or refused in one sentence."""
    result = run_python("""
        import os, torch
        a, b = torch.ones(3, device="cuda"), torch.ones(3)
        try:
            a + b
        except RuntimeError:
            pass
        os.kill(os.getpid(), 9)
    """, sim=1, options=["--quiet"])
    assert result.status == 137
    assert len(result.raised()) == 1
    trace = next(result.out.glob("rank*.devsan"))
    size = trace.stat().st_size
    for cut in (0, 1, 7, 100, 4095, 4096, size // 100, size // 2, size - 1):
        part = tmp_path / f"rank-.{cut}.devsan"
        shutil.copy(trace, part)
        with open(part, "r+b") as file:
            file.truncate(cut)
    for part in tmp_path.glob("rank-.*.devsan"):
        done = subprocess.run([devsan, "view", part, "--json"], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), (part.name, done)
        if done.returncode == 0:
            assert json.loads(done.stdout)["damage"], part.name
        else:
            assert part.name in done.stderr, done
