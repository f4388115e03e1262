"""Tools that run a program under them: test runners, tracers, debuggers, profilers, servers."""

import subprocess

import pytest

from hooks_programs import line_of
from places import PROGRAM, REFUSED, Place


@pytest.fixture
def place(devsan, python, tmp_path):
    return Place(devsan, python, tmp_path)


# ---- pytest: torch is imported while tests are collected, inside of generators

TESTS = """\
import pytest
import torch


@pytest.fixture
def left():
    return torch.ones(3, device="cuda")


@pytest.fixture
def right():
    yield torch.ones(3)  # @fixture


def test_fails(left, right):
    assert (left + right).sum() == 6  # @fails


def test_raises():
    left = torch.ones(3, device="cuda")
    right = torch.ones(3)  # @raises_cause
    with pytest.raises(RuntimeError):
        left + right  # @raises


def test_passes(left):
    assert left.sum().shape == ()
"""


def check_tests(place):
    report = place.report
    loud = [f for f in report["findings"] if f["severity"] != "note"]
    by_line = {f["where"]["line"]: f for f in loud}
    assert sorted(by_line) == [line_of(TESTS, "fails"), line_of(TESTS, "raises")] and report["damage"] == []
    for mark, cause in (("fails", "fixture"), ("raises", "raises_cause")):
        found = by_line[line_of(TESTS, mark)]
        assert found["where"]["function"] == f"test_{mark}" and found["handled"]
        assert [operand["name"] for operand in found["operands"]] == ["left", "right"]
        assert found["root_cause"]["line"] == line_of(TESTS, cause)


def test_under_pytest_a_failing_test_and_an_expected_error_are_found(place):
    file = place.file("test_toy.py", TESTS)
    place.run(place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", file)
    assert place.status == 1 and "1 failed, 2 passed" in place.stdout, place.stdout
    check_tests(place)


@pytest.mark.slow
def test_under_pytest_with_workers_findings_of_all_workers_are_read(place):
    place.needs("xdist")
    file = place.file("test_toy.py", TESTS)
    place.run(place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", file)
    assert place.status == 1 and "1 failed, 2 passed" in place.stdout, place.stdout
    check_tests(place)


# ---- tracers, debuggers, profilers

def test_under_coverage(place):
    place.needs("coverage")
    file = place.file("toy.py", PROGRAM)
    data = place.folder / "coverage.data"
    place.run(place.python, "-m", "coverage", "run", f"--data-file={data}", "--include=toy.py", file).found("toy.py")
    assert data.exists()
    assert (place.status, place.stdout) == (0, REFUSED), place.stderr


def test_under_pdb_from_a_breakpoint_on(place):
    file = place.file("toy.py", PROGRAM)
    line = line_of(PROGRAM, "here")
    place.run(place.python, "-m", "pdb", "-c", f"break {line}", "-c", "continue", "-c", "step", "-c", "continue",
              "-c", "quit", file)
    assert place.status == 0 and REFUSED in place.stdout and "Net.forward" not in place.stderr
    place.found("toy.py")


def test_torch_is_imported_at_the_prompt_of_pdb(place):
    file = place.file("main.py", "def f():\n    x = 1\n    return x\n\n\nf()\n")
    place.file("toy.py", PROGRAM)
    place.run(place.python, "-m", "pdb", "-c", "break 3", "-c", "continue", "-c", "import toy", "-c", "toy.run()",
              "-c", "quit", file)
    assert place.status == 0 and REFUSED in place.stdout
    place.found("toy.py")


@pytest.mark.slow
def test_under_debugpy(place):
    place.needs("debugpy")
    file = place.file("toy.py", PROGRAM)
    place.run(place.python, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", "127.0.0.1:0", file)
    assert place.status == 0 and REFUSED in place.stdout, place.stderr
    place.found("toy.py")


def test_under_a_profiler_with_a_trace_function_of_the_program_s_own(place):
    place.file("toy.py", PROGRAM)
    main = place.file("main.py", """
        import cProfile, sys, threading

        calls = []

        def trace(frame, event, argument):
            calls.append(event)
            return trace

        def main():
            import toy
            toy.run()

        threading.settrace(trace)
        sys.settrace(trace)
        profile = cProfile.Profile()
        profile.enable()
        main()
        profile.disable()
        sys.settrace(None)
        print(len(calls) > 100, len(profile.getstats()) > 100)
        """)
    place.run(place.python, main).ended(REFUSED + "True True\n").found("toy.py")


# ---- servers and pools of threads

def test_in_threads_of_a_pool_and_in_an_endpoint_of_a_server(place):
    place.needs("uvicorn")
    place.file("toy.py", PROGRAM)
    main = place.file("main.py", """
        import asyncio, concurrent.futures, urllib.request
        import uvicorn

        async def endpoint(scope, receive, send):
            assert scope["type"] == "http"
            import toy
            toy.run()
            await asyncio.get_running_loop().run_in_executor(pool, toy.run)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"done"})

        pool = concurrent.futures.ThreadPoolExecutor(2)

        async def main():
            server = uvicorn.Server(uvicorn.Config(endpoint, port=0, log_level="critical", lifespan="off"))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            ask = lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode()
            print(await asyncio.to_thread(ask))
            server.should_exit = True
            await serving

        asyncio.run(main())
        """)
    place.run(place.python, main).ended(REFUSED * 2 + "done\n").found("toy.py", count=2)


@pytest.mark.slow
def test_in_a_worker_that_a_server_has_forked(place):
    place.needs("gunicorn")
    place.file("toy.py", PROGRAM)
    place.file("server.py", """
        import os, signal
        import toy

        def application(environment, start):
            toy.run()
            start("200 OK", [("Content-Type", "text/plain")])
            return [b"done"]
        """)
    main = place.file("main.py", """
        import signal, subprocess, sys, time, urllib.request, socket
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen([sys.executable, "-m", "gunicorn", "--workers", "2", "--preload", "--log-level", "critical",
                                   "--bind", f"127.0.0.1:{port}", "server:application"])
        while True:
            try:
                print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").read().decode())
                break
            except OSError:
                time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        print(server.wait())
        """)
    place.run(place.python, main)
    assert (place.status, place.stdout) == (0, REFUSED + "done\n0\n"), place.stderr
    place.found("toy.py")


# ---- what starts programs

def test_under_hydra(place):
    place.needs("hydra")
    file = place.file("toy.py", PROGRAM.replace('if __name__ == "__main__":\n    run()', ""))
    source = file.read_text()
    main = place.file("main.py", """
        import hydra

        @hydra.main(version_base=None, config_path=None)
        def main(config):
            import toy
            toy.run()

        main()
        """)
    place.run(place.python, main, "hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none",
              "hydra/hydra_logging=none").ended().found("toy.py", source)


def test_in_processes_of_every_start_method_and_of_a_pool(place):
    place.file("toy.py", PROGRAM)
    main = place.file("main.py", """
        import concurrent.futures, multiprocessing

        def work():
            import toy
            toy.run()

        if __name__ == "__main__":
            for method in ("spawn", "forkserver"):
                process = multiprocessing.get_context(method).Process(target=work)
                process.start()
                process.join()
            import toy
            fork = multiprocessing.get_context("fork")
            process = fork.Process(target=work)
            process.start()
            process.join()
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as pool:
                pool.submit(work).result()
            work()
        """)
    place.run(place.python, main).ended(REFUSED * 5).found("toy.py", count=5)


@pytest.mark.slow
def test_called_by_compiled_code(place):
    place.needs("Cython", "setuptools")
    place.file("toy.py", PROGRAM)
    place.file("caller.pyx", """
        def items():
            import toy
            yield toy

        async def work():
            for toy in items():
                toy.run()
        """)
    place.file("setup.py", """
        from setuptools import Extension, setup
        from Cython.Build import cythonize
        setup(ext_modules=cythonize([Extension("caller", ["caller.pyx"])], language_level=3))
        """)
    subprocess.run([place.python, "setup.py", "-q", "build_ext", "--inplace"], cwd=place.folder, check=True,
                   capture_output=True)
    main = place.file("main.py", "import asyncio, caller\nasyncio.run(caller.work())\n")
    place.run(place.python, main).ended().found("toy.py")
