"""Suppressions, `--halt` and the contexts of the Python package, for findings that PyTorch raises nothing for."""

import pytest

from harness import ROOT

PACKAGE = {"PYTHONPATH": str(ROOT / "launch")}
UNPINNED = """
    import torch
    host = torch.ones(1000)
    print("before", flush=True)
    device = host.to("cuda", non_blocking=True)
    print("after", flush=True)
"""
RACE = """
    import torch
    device = torch.ones(1000, device="cuda")
    host = torch.empty(1000, pin_memory=True)
    print("before", flush=True)
    host.copy_(device, non_blocking=True)
    total = host + 1
    print("after", flush=True)
"""


@pytest.mark.parametrize("source, kind", [(UNPINNED, "unpinned-async-copy"), (RACE, "async-race")])
def test_a_warning_halts_at_once(run_python, source, kind):
    result = run_python(source, sim=1, options=["--halt"])
    assert (result.status, result.stdout) == (66, "before\n"), result.stderr
    assert "ending the process with status 66" in result.stderr
    assert [finding["kind"] for finding in result.loud()] == [kind]
    assert [process["close"] for process in result.report["run"]["processes"]] == ["halted"]


@pytest.mark.parametrize("source, kind", [(UNPINNED, "unpinned-async-copy"), (RACE, "async-race")])
def test_a_suppressed_warning_is_kept_apart_and_halts_nothing(run_python, tmp_path, source, kind):
    (tmp_path / "devsan.supp").write_text(f"{kind} file=program*.py\n")
    result = run_python(source, sim=1, options=["--halt", "--suppressions", "devsan.supp", "--fail-on", kind])
    assert (result.status, result.stdout) == (0, "before\nafter\n"), result.stderr
    assert result.loud() == [] and [finding["kind"] for finding in result.report["suppressed"]] == [kind]


def test_a_warning_is_allowed_and_expected(run_python):
    result = run_python("""
        import devsan, torch
        host = torch.ones(1000)
        for _ in range(2):
            with devsan.expect("unpinned-async-copy") as found, devsan.allow("async-race"):
                device = host.to("cuda", non_blocking=True)
            print(found.count)
    """, sim=1, env=PACKAGE, options=["--halt"])
    assert (result.status, result.stdout) == (0, "1\n1\n"), result.stderr
    assert result.loud() == []
    assert [(f["kind"], f["silence"]["by"], f["count"]) for f in result.report["suppressed"]] == [
        ("unpinned-async-copy", "expect", 2)]


def test_one_copy_is_no_transfer_that_was_expected(run_python):
    result = run_python("""
        import devsan, torch
        host = torch.ones(1000)
        with devsan.expect("implicit-transfer") as found:
            for _ in range(3):
                device = host.to("cuda")
        print(found.count)
        try:
            with devsan.expect("implicit-transfer"):
                device = host.to("cuda")
        except devsan.ExpectationError:
            print("none")
    """, sim=1, env=PACKAGE)
    assert (result.status, result.stdout) == (0, "2\nnone\n"), result.stderr
