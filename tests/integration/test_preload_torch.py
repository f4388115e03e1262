"""What libdevsan.so does in a process that has torch, shown with a stand-in for torch and hooks that add 1000."""

import os
import re
import stat
import subprocess

import pytest

from preload_toys import EXECUTED, EXITED, OPEN, QUICK_EXITED, close_mark, preload, toys  # noqa: F401 (fixtures)


# ---- how torch comes into the process

def test_a_linked_program_is_hooked_from_its_first_operator(preload, toys):
    run = preload.run(toys.linked, "op", "nested")
    assert tuple(run) == (0, "op: 1001\nnested: 1001\n", "")


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_a_program_is_hooked_however_its_calls_are_bound(preload, toys, binding):
    program = toys.build(f"linked-{binding}", "linked.c", f"-Wl,-z,{binding},-z,relro", *toys.link_torch)
    assert preload.run(program, "op").stdout == "op: 1001\n"


def test_torch_that_a_plugin_brings_is_hooked_before_the_plugin_is_entered(preload, toys):
    host = toys.build("host", "host.c", "-rdynamic")
    plugin = toys.shared("libplugin.so", "plugin.c", *toys.link_torch)
    assert preload.plain(host, "symbol", plugin).stdout == "op: 1\nnested: 1\n"
    run = preload.run(host, "symbol", plugin)
    assert tuple(run) == (0, "op: 1001\nnested: 1001\n", "")


def test_a_plugin_that_registers_itself_is_hooked(preload, toys):
    host = toys.build("host", "host.c", "-rdynamic")
    plugin = toys.shared("libregistering.so", "registering_plugin.cpp", *toys.link_torch)
    assert preload.plain(host, "register", plugin).stdout == "op: 1\nunregistered\n"
    run = preload.run(host, "register", plugin)
    assert tuple(run) == (0, "op: 1001\nunregistered\n", "")


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_an_object_that_comes_later_is_hooked(preload, toys, binding):
    plugin = toys.shared(f"liblate-{binding}.so", "plugin.c", f"-Wl,-z,{binding},-z,relro", *toys.link_torch)
    assert preload.run(toys.linked, "op", "late", plugin).stdout == "op: 1001\nlate: 1001\n"


def test_the_hooks_wait_for_what_lies_beside_torch(preload, toys):
    beside = toys.shared("torch/lib/libbeside.so", "beside.c", *toys.link_torch)
    host = toys.build("host", "host.c", "-rdynamic")
    plugin = toys.shared("libplugin-beside.so", "plugin.c", "-Wl,--no-as-needed", f"-L{beside.parent}", "-lbeside",
                         *toys.link_torch)
    run = preload.run(host, "symbol", plugin)
    assert tuple(run) == (0, "op: 1001\nnested: 1001\n", "")


def test_two_builds_of_devsan_load_one_set_of_hooks(preload, toys, tmp_path):
    copy = tmp_path / "libdevsan.so"
    copy.write_bytes(preload.library.read_bytes())
    run = preload.run(toys.linked, "op", preload=[copy, preload.library])
    assert tuple(run) == (0, "op: 1001\n", "")
    assert len(preload.traces()) == 1


def test_plugins_that_come_and_go_in_threads_do_no_harm(preload, toys):
    churn = toys.build("churn", "churn.c", "-lpthread", "-Wl,--no-as-needed", *toys.link_torch)
    plugins = [toys.shared(f"churned{i}.so", "plugin.c", f"-Wl,-z,{'now' if i % 2 else 'lazy'},-z,relro",
                           *toys.link_torch) for i in range(6)]
    run = preload.run(churn, 300, *plugins)
    assert tuple(run) == (0, "calls 1800, wrong 0, most hooked 1\n", "")


# ---- where the trace goes

def test_without_options_a_process_makes_a_directory_of_its_own(preload, toys):
    preload.run(toys.linked, "op")
    [trace] = preload.traces()
    assert trace.parent.parent == preload.folder / "devsan-out"
    pid = trace.parent.name.rsplit("-", 1)[1]
    assert trace.name == f"rank-.{pid}.devsan"
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    assert stat.S_IMODE(trace.parent.stat().st_mode) == 0o700


def test_children_share_the_directory_of_the_first_process(preload, toys):
    run = preload.run(toys.linked, "op", "self", "fork", "self")
    assert run.stdout.count("child: 0") == 2 and "child: 11" in run.stdout
    traces = preload.traces()
    assert len(traces) == 4
    assert len({trace.parent for trace in traces}) == 1


def test_processes_that_start_at_once_share_a_directory(preload, toys):
    processes = "; ".join(["\"$0\" op &"] * 8) .replace("&;", "&")
    run = preload.run("bash", "-c", f"{processes} wait", toys.linked, options=[f'out="{preload.folder}/a b/out"'])
    assert run.stdout == "op: 1001\n" * 8 and run.stderr == ""
    assert len(list((preload.folder / "a b" / "out").iterdir())) == 8


def test_a_relative_directory_is_the_first_processs_for_all(preload, toys):
    run = preload.run(toys.linked, "op", "self", options=["out=here"])
    assert "child: 0" in run.stdout
    assert len(list((preload.folder / "here").iterdir())) == 2


def test_a_fork_child_that_runs_no_operator_leaves_no_file(preload, toys):
    assert preload.run(toys.linked, "op", "idle-fork").stdout.endswith("child: 13\n")
    [trace] = preload.traces()
    assert close_mark(trace) == EXITED


# ---- how the process ends

@pytest.mark.parametrize(
    "how, status, mark",
    [("exit", 3, EXITED), ("_exit", 4, QUICK_EXITED), ("_Exit", 4, QUICK_EXITED), ("quick_exit", 5, QUICK_EXITED),
     ("abort", 134, OPEN), ("op", 0, EXITED)])
def test_the_trace_says_how_the_process_ended(preload, toys, how, status, mark):
    assert preload.run(toys.linked, "op", how).status == status
    [trace] = preload.traces()
    assert close_mark(trace) == mark


@pytest.mark.parametrize("how, output", [
    ("execv", "executed\n"), ("execl", "a b c d e f g h\n"), ("execlp", "found\n"), ("execle", "ONLY=this\n"),
    ("fexecve", "by fd\n")])
def test_the_trace_says_that_another_program_took_over(preload, toys, how, output):
    assert tuple(preload.run(toys.linked, how)) == (0, output, "")
    [trace] = preload.traces()
    assert close_mark(trace) == EXECUTED


def test_an_exec_that_fails_changes_nothing(preload, toys):
    run = preload.run(toys.linked, "execve-none", "execlp-none", "op")
    assert run.stdout == "execve: -1 2\nexeclp: -1 2\nop: 1001\n"
    [trace] = preload.traces()
    assert close_mark(trace) == EXITED
    preload.run(toys.linked, "execve-none", "abort")
    assert sorted(map(close_mark, preload.traces())) == [OPEN, EXITED]


def test_a_vfork_child_leaves_its_parents_trace_alone(preload, toys):
    assert preload.run(toys.linked, "op", "vfork", "op", "abort").stdout == "op: 1001\nchild: 14\nop: 1001\n"
    [trace] = preload.traces()
    assert close_mark(trace) == OPEN


# ---- what it says, and where devsan cannot work

def test_without_hooks_one_line_says_how_to_make_them_and_the_program_runs(preload, toys):
    run = preload.run(toys.linked, "op", "self", "exit", options=None, env={"XDG_CACHE_HOME": str(preload.folder)})
    assert (run.status, run.stdout) == (3, "op: 1\nop: 1\nchild: 0\n")
    assert run.stderr == f"devsan: no hooks for the torch at {toys.torch.parent}; build them with: devsan build\n"
    assert preload.files() == []


def test_a_cache_that_others_can_write_is_refused(preload, toys):
    cache = preload.folder / "devsan"
    cache.mkdir()
    cache.chmod(0o777)
    run = preload.run(toys.linked, "op", options=None, env={"XDG_CACHE_HOME": str(preload.folder)})
    assert (run.status, run.stdout) == (0, "op: 1\n")
    assert run.stderr.count("\n") == 1 and "can be written by other users" in run.stderr


def test_a_torch_that_does_not_tell_its_abi_is_told_of_and_the_program_runs(preload, toys):
    torch = toys.shared("unmarked/lib/libtorch_cpu.so", "torch.c", "-Wl,-soname,libtorch_cpu.so", "-Wl,--build-id").parent
    toys.shared("unmarked/lib/libc10.so", "torch.c")
    program = toys.build("unmarked-linked", "linked.c", f"-L{torch}", "-ltorch_cpu", f"-Wl,-rpath,{torch}")
    run = preload.run(program, "op", options=None, env={"XDG_CACHE_HOME": str(preload.folder)})
    assert tuple(run) == (0, "op: 1\n", f"devsan: cannot tell the C++ ABI of the torch at {torch.parent}; "
                                        "the program runs without devsan\n")


def test_a_torch_that_is_too_old_is_told_of_and_the_program_runs(preload, toys):
    torch = toys.shared("old/lib/libtorch_cpu.so", "torch.c", "-Wl,-soname,libtorch_cpu.so", "-Wl,--build-id").parent
    (torch.parent / "version.py").write_text("__version__ = '2.5.1'\n")
    program = toys.build("old-linked", "linked.c", f"-L{torch}", "-ltorch_cpu", f"-Wl,-rpath,{torch}")
    run = preload.run(program, "op", options=None, env={"XDG_CACHE_HOME": str(preload.folder)})
    assert tuple(run) == (0, "op: 1\n", "devsan: torch 2.5.1 is too old: 2.6 or later is needed; "
                                        "the program runs without devsan\n")


def test_a_directory_that_cannot_be_made_is_said_once_and_the_program_runs(preload, toys):
    (preload.folder / "file").write_text("in the way")
    run = preload.run(toys.linked, "op", "self", "exit", options=[f'out="{preload.folder}/file/out"'])
    assert (run.status, run.stdout) == (3, "op: 1\nop: 1\nchild: 0\n")
    assert run.stderr == (f"devsan: cannot write traces to {preload.folder}/file/out: Not a directory; "
                          "the program runs without devsan\n")


def test_hooks_that_cannot_be_loaded_or_refuse_leave_the_program_alone(preload, toys):
    missing = preload.run(toys.linked, "op", options=["hooks=/none"])
    assert tuple(missing) == (0, "op: 1\n", "devsan: no hooks at /none/libdevsan_torch.so; "
                                            "the program runs without devsan\n")
    (preload.folder / "broken").mkdir()
    (preload.folder / "broken/libdevsan_torch.so").write_text("no library")
    broken = preload.run(toys.linked, "op", options=[f'hooks="{preload.folder}/broken"'])
    assert (broken.status, broken.stdout, broken.stderr.count("\n")) == (0, "op: 1\n", 1)
    refusing = toys.shared("refusing/libdevsan_torch.so", "hooks.cpp", "-std=c++20", "-DREFUSE", *toys.link_torch)
    run = preload.run(toys.linked, "op", options=[f'hooks="{refusing.parent}"'])
    assert tuple(run) == (0, "op: 1\n", "devsan: these hooks serve nobody\n")


def test_options_that_make_no_sense_are_told_once_and_the_rest_counts(preload, toys):
    run = preload.run(toys.linked, "op", "self", options=["nonsense=1", "sim=many", "trace_size=4M"])
    assert run.stdout == "op: 1001\nop: 1001\nchild: 0\n"
    lines = run.stderr.splitlines()
    assert len(lines) == 2 and all(line.startswith("devsan: DEVSAN_OPTIONS: ") for line in lines)
    assert {trace.stat().st_size for trace in preload.traces()} == {4 << 20}


def test_switched_off_it_does_nothing(preload, toys):
    run = preload.run(toys.linked, "op", "fork", options=["enabled=0", "nonsense=1"])
    assert tuple(run) == (0, "op: 1\nchild: 12\n", "")
    assert preload.files() == []


def test_quiet_it_says_nothing(preload, toys):
    assert tuple(preload.run(toys.linked, "op", options=["hooks=/none", "quiet=1"])) == (0, "op: 1\n", "")


def test_nothing_is_written_to_another_file_that_has_become_stderr(preload, toys):
    host = toys.build("host", "host.c", "-rdynamic")
    plugin = toys.shared("libplugin.so", "plugin.c", *toys.link_torch)
    run = preload.run("bash", "-c", f"exec 2>own.txt; \"$@\"", "bash", host, "symbol", plugin, options=["hooks=/none"])
    # The program was started with that file, so it is its stderr.
    assert (preload.folder / "own.txt").read_text().startswith("devsan: no hooks")
    late = toys.build("late-host", "late_host.c", "-rdynamic")
    run = preload.run(late, plugin, options=["hooks=/none"])
    assert tuple(run) == (0, "op: 1\n", "")
    assert (preload.folder / "stderr.txt").read_text() == "the program's own\n"


def test_a_closed_stderr_and_a_reader_that_is_gone_do_no_harm(preload, toys):
    for command in ("exec 2>&-; \"$@\"", "\"$@\" 2> >(exec true); exit $?"):
        run = preload.run("bash", "-c", command, "bash", toys.linked, "op", "exit", options=["hooks=/none"])
        assert (run.status, run.stdout) == (3, "op: 1\n")


@pytest.mark.parametrize("version, served", [
    ("3.10.0 (main) [GCC]", True), ("3.14.2 (main) [GCC]", True), ("3.9.18 (main) [GCC]", False),
    ("3.15.0a1 (main) [GCC]", False), ("3.13.1 experimental free-threading build (main) [GCC]", False),
    ("3.14.0 free-threading build (main) [GCC]", False), ("3.10.14 (main) [PyPy 7.3.17]", False)])
def test_a_python_that_is_not_supported_is_refused_in_one_line(preload, toys, version, served):
    name = "".join(c if c.isalnum() else "_" for c in version)
    program = toys.build(name, "fake_python.c", f'-DVERSION="{version}"', "-rdynamic", *toys.link_torch)
    run = preload.run(program)
    assert run.stdout == ("op: 1001\n" if served else "op: 1\n")
    assert run.stderr.count("\n") == (0 if served else 1)
    assert run.stderr.startswith("" if served else "devsan: ") and len(preload.traces()) == served


def test_torch_in_a_subinterpreter_is_refused(preload, toys):
    extension = toys.shared("torch/_C.so", "extension.c", "-DPHASES=1", *toys.link_torch)
    python = toys.build("subinterpreter", "importing_python.c", "-DIN_MAIN=0", "-rdynamic")
    run = preload.run(python, extension)
    assert run.stdout == "made, op: 1\nmodule: 1\nothers: 0\n"
    assert run.stderr == ("devsan: torch in a subinterpreter is not supported; the program runs without devsan\n")


def test_the_simulation_gets_torchs_module_when_it_is_made(preload, toys):
    extension = toys.shared("torch/_C.so", "extension.c", "-DPHASES=1", *toys.link_torch)
    python = toys.build("importing", "importing_python.c", "-DIN_MAIN=1", "-rdynamic")
    toys.shared("hooks/libdevsan_sim.so", "sim.cpp", "-std=c++20")
    plain = preload.run(python, extension)
    assert tuple(plain) == (0, "made, op: 1001\nmodule: 1\nothers: 0\n", "")
    run = preload.run(python, extension, options=["sim=2"])
    assert tuple(run) == (0, "simulating 2 devices\nmade, op: 1001\ngot the module: 1\nmodule: 1\nothers: 0\n", "")


def test_a_module_definition_is_not_taken_for_the_module(preload, toys):
    extension = toys.shared("two/torch/_C.so", "extension.c", "-DPHASES=2", *toys.link_torch)
    python = toys.build("importing", "importing_python.c", "-DIN_MAIN=1", "-rdynamic")
    toys.shared("hooks/libdevsan_sim.so", "sim.cpp", "-std=c++20")
    run = preload.run(python, extension, options=["sim=2"])
    assert tuple(run) == (0, "simulating 2 devices\nmade, op: 1001\nmodule: 1\nothers: 0\n", "")


def test_where_there_is_no_simulation_the_hooks_work_all_the_same(preload, toys):
    alone = toys.shared("alone/libdevsan_torch.so", "hooks.cpp", "-std=c++20", *toys.link_torch)
    run = preload.run(toys.linked, "op", options=[f'hooks="{alone.parent}"', "sim=2"])
    assert (run.status, run.stdout) == (0, "op: 1001\n")
    assert re.fullmatch(r"devsan: no simulated devices: they need torch 2\.\d+ or later; there is no "
                        + re.escape(str(alone.parent / "libdevsan_sim.so")) + "\n", run.stderr)
    assert len(preload.traces()) == 1


def test_secrets_on_the_command_line_do_not_reach_the_trace(preload, toys):
    preload.run(toys.linked, "op", "--hf-token=SECRET1", "--api-key", "SECRET2", "http://u:SECRET3@h/",
                env={"PASSWORD": "SECRET4"})
    [trace] = preload.traces()
    content = trace.read_bytes()
    assert b"--hf-token=***" in content and b"SECRET" not in content


# ---- other preloaded libraries

@pytest.mark.parametrize("other", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_another_allocator_stays_in_charge(preload, toys, other, order):
    path = find_shared_library(other)
    libraries = [preload.library, path] if order == "first" else [path, preload.library]
    run = preload.run(toys.linked, "op", "fork", "self", "exit", preload=libraries)
    assert run.status == 3 and run.stderr == ""
    assert run.stdout.startswith("op: 1001\nchild: 11\nop: 1001\nchild: 0")
    maps = preload.run("cat", "/proc/self/maps", preload=libraries).stdout
    assert other.split(".")[0] in maps and "libdevsan.so" in maps


@pytest.mark.parametrize("order", ["first", "last"])
def test_the_address_sanitizer_still_works(preload, toys, order):
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(asan):
        pytest.skip("no libasan")
    program = toys.build("linked-asan", "linked.c", "-fsanitize=address", *toys.link_torch)
    overflow = toys.build("overflow", "overflow.c", "-fsanitize=address", *toys.link_torch)
    asan = os.path.realpath(asan)
    # The sanitizer wants to be first, and says so otherwise; that check is the user's to switch off.
    libraries = [asan, preload.library] if order == "last" else [preload.library, asan]
    env = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    run = preload.run(program, "op", "fork", "self", "exit", preload=libraries, env=env)
    assert tuple(run) == (3, "op: 1001\nchild: 11\nop: 1001\nchild: 0\n", "")
    found = preload.run(overflow, preload=libraries, env=env)
    assert found.status == 1 and "heap-buffer-overflow" in found.stderr and "op: 1001" in found.stdout


def find_shared_library(name):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
        if os.path.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    pytest.skip(f"{name} is not installed")
