"""What `devsan run` makes of the findings of a run."""

import re

# An exception that ends a thread leaves the exit status of the process alone.
RAISES_IN_THREAD = """
    import threading, torch
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=lambda: torch.ones(3, device="cuda") + torch.ones(3))
    thread.start()
    thread.join()
"""
HANDLES = """
    import torch
    try:
        torch.ones(3, device="cuda") + torch.ones(3)
    except RuntimeError:
        print("handled")
    torch.ones(3) + 1
"""
RAISES = """
    import torch
    torch.ones(3, device="cuda") + torch.ones(3)
"""


def test_fail_on_names_the_kind_that_was_found(run_python):
    result = run_python(RAISES_IN_THREAD, sim=1, options=["--fail-on", "mixed-operands,device-mismatch"])
    assert result.status == 66, result.stderr


def test_fail_on_says_which_finding_failed_the_run_where_the_summary_has_none_of_it(run_python):
    result = run_python("""
        import torch
        for _ in range(4):
            print(torch.ones(3, device="cuda").sum().item())
    """, sim=1, options=["--fail-on", "implicit-sync"])
    assert result.status == 66
    assert re.search(r"devsan: exit status 66 for --fail-on: implicit-sync at \S+\.py:4\n", result.stderr)


def test_fail_on_passes_over_other_kinds(run_python):
    assert run_python(RAISES_IN_THREAD, sim=1, options=["--fail-on", "mixed-operands,async-race"]).status == 0


def test_fail_on_passes_over_what_the_program_handled(run_python):
    result = run_python(HANDLES, sim=1, options=["--fail-on", "any"])
    assert (result.status, result.stdout) == (0, "handled\n")
    assert [finding["handled"] for finding in result.findings] == [True]


def test_fail_on_changes_no_status_but_0(run_python):
    assert run_python(RAISES, sim=1, options=["--fail-on", "any"]).status == 1


def test_fail_on_judges_a_quiet_run_too(run_python):
    result = run_python(RAISES_IN_THREAD, sim=1, options=["--quiet", "--fail-on", "any"])
    assert (result.status, result.stderr) == (66, "")


def test_findings_of_an_earlier_run_in_the_directory_do_not_count(run_python, tmp_path):
    out = tmp_path / "shared"
    assert run_python(RAISES_IN_THREAD, sim=1, out=out, options=["--fail-on", "any"]).status == 66
    assert run_python("import torch; torch.ones(3) + 1", sim=1, out=out, options=["--fail-on", "any"]).status == 0


def test_traces_take_up_little_space_after_the_run(run_python):
    result = run_python(RAISES, sim=1)
    [trace] = result.out.glob("*.devsan")
    assert trace.stat().st_size == 16 << 20
    assert trace.stat().st_blocks * 512 < 2 << 20
    assert len(result.raised()) == 1
