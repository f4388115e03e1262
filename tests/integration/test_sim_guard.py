"""Device pages that the host may not touch: who follows a device pointer ends by SIGSEGV and is found."""

import json
import signal
import subprocess
import textwrap
from pathlib import Path

import pytest
from harness import ROOT, Runner

SEGV = 128 + signal.SIGSEGV

PRELUDE = """
import ctypes, faulthandler, json, os, resource, signal, sys, threading
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import torch
"""

BUILD = """\
import torch
from torch.utils.cpp_extension import include_paths, library_paths
print(int(torch.compiled_with_cxx11_abi()), *("-isystem" + path for path in include_paths()),
      *("-L" + path for path in library_paths()))
"""


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """tests/integration/guard_reader.c as a shared object."""
    library = tmp_path_factory.mktemp("reader") / "libreader.so"
    source = ROOT / "tests/integration/guard_reader.c"
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-o", library, source], check=True)
    return library


@pytest.fixture(scope="session")
def operators(python, tmp_path_factory):
    """tests/integration/guard_reader.cpp as a shared object."""
    done = subprocess.run([python, "-W", "ignore", "-c", BUILD], capture_output=True, text=True, check=True)
    abi, *paths = done.stdout.split()
    library = tmp_path_factory.mktemp("operators") / "liboperators.so"
    subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-o", library,
                    ROOT / "tests/integration/guard_reader.cpp", *paths, "-ltorch_cpu", "-lc10"], check=True)
    return library


@pytest.fixture
def run(devsan, python, tmp_path, reader, operators):
    """Runs a program on two simulated devices whose pages are guarded, unless asked not to."""
    runner = Runner(devsan, python, tmp_path)

    def call(body, guard=True, before="", **others):
        source = textwrap.dedent(before) + PRELUDE + textwrap.dedent(body)
        source = source.replace("LOAD_READER", f"torch.ops.load_library({str(operators)!r})")
        source = source.replace("READER", f"ctypes.CDLL({str(reader)!r})")
        result = runner(source, sim=2, options=["--sim-guard"] if guard else [], **others)
        result.source = source.splitlines()
        return result

    return call


def accesses(result):
    return [f for f in result.findings if f["kind"] == "host-dereference"]


def text_at(result, line):
    return result.source[line - 1].strip()


READS = {
    "an operator of an extension": "torch.ops.devsan_reader.first(y)  # here",
    "a tensor made from the address": "torch.ops.devsan_reader.doubled(y)  # here",
    "a function by ctypes": "reader.read_first(ctypes.c_void_p(y.data_ptr()))  # here",
    "a copy by the C library": "reader.read_all(room, ctypes.c_void_p(y.data_ptr()), ctypes.c_size_t(6))  # here",
    "an array over the address": "list((ctypes.c_float * 6).from_address(y.data_ptr()))  # here",
    "a view of a tensor": "ctypes.c_float.from_address(y[1:, 1].data_ptr()).value  # here",
    "memory of the second device": "z = y.to('cuda:1'); ctypes.c_float.from_address(z.data_ptr()).value  # here",
    "__cuda_array_interface__": "ctypes.c_float.from_address(y.__cuda_array_interface__['data'][0]).value  # here",
    "a thread of Python": """
def follow():
    reader.read_first(ctypes.c_void_p(y.data_ptr()))  # here
thread = threading.Thread(target=follow)
thread.start()
thread.join()""",
    "a backward": "Follow.apply(y.requires_grad_()).sum().backward()",
    "a storage": "ctypes.c_float.from_address(y.untyped_storage().data_ptr()).value  # here",
}

READ_PROGRAM = """
LOAD_READER
reader = READER
room = (ctypes.c_float * 6)()
x = torch.arange(6.0).reshape(2, 3)
y = x.cuda()  # origin


class Follow(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * reader.read_first(ctypes.c_void_p(y.data_ptr()))  # here


print("before", flush=True)
{read}
print("after", flush=True)
"""


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_device_pointer_that_the_host_follows_ends_the_process_and_is_found(run, read):
    result = run(READ_PROGRAM.format(read=read))
    assert result.status == SEGV and result.stdout == "before\n"
    [finding] = accesses(result)
    assert finding["severity"] == "error" and not finding["raised"]
    assert text_at(result, finding["where"]["line"]).endswith("# here")
    assert finding["root_cause"]["line"] == finding["fix"]["line"] == finding["where"]["line"]
    [owner] = finding["operands"]
    assert owner["device"] == ("cuda:1" if "cuda:1" in read else "cuda:0") and owner["odd"]
    made = [text_at(result, step["line"]) for step in owner["lineage"]]
    assert made[0].endswith("# here" if "cuda:1" in read else "# origin") and "y = x.cuda()  # origin" in made
    [end] = [f for f in result.findings if f["kind"] == "abnormal-exit"]
    assert end["ending"]["signal"] == "SIGSEGV"
    assert "followed a device pointer" in result.stderr and "host-dereference" in result.stderr


def test_the_finding_names_the_operator_the_function_and_the_byte(run):
    result = run(READ_PROGRAM.format(read=READS["an operator of an extension"]))
    [finding] = accesses(result)
    assert finding["op"] == "devsan_reader::first" and "devsan_reader::first" in finding["root_cause"]["why"]
    assert finding["native_stack"][0]["module"].endswith("/liboperators.so")

    result = run(READ_PROGRAM.format(read="reader.read_first(ctypes.c_void_p(y.data_ptr() + 8))"))
    [finding] = accesses(result)
    assert finding["native_stack"][0]["symbol"] == "read_first"
    assert finding["host_access"] == {"writes": False, "byte": 8, "bytes": 24}
    shown = subprocess.run([result.devsan, "view", result.out], capture_output=True, text=True, check=True).stdout
    assert "read_first (libreader.so) reads memory of cuda:0 on the host" in " ".join(shown.split())
    assert "Where `tensor` on cuda:0 comes from" in shown

    result = run(READ_PROGRAM.format(read=READS["a copy by the C library"]))
    [finding] = accesses(result)
    assert [frame["symbol"] for frame in finding["native_stack"]][-1] == "read_all"


def test_a_write_is_told_as_one(run):
    result = run(READ_PROGRAM.format(read="reader.write_first(ctypes.c_void_p(y.data_ptr()))"))
    [finding] = accesses(result)
    assert result.status == SEGV
    assert finding["host_access"] == {"writes": True, "byte": 0, "bytes": 24}


def test_memory_that_was_given_back_is_told_as_such(run):
    result = run(READ_PROGRAM.format(read="""
address = torch.ones(1 << 20, device="cuda").data_ptr()
print(ctypes.c_float.from_address(address).value)"""))
    [finding] = accesses(result)
    assert result.status == SEGV and finding["operands"] == []
    shown = subprocess.run([result.devsan, "view", result.out], capture_output=True, text=True, check=True).stdout
    assert "reads device memory that has been given back" in " ".join(shown.split())


ON_THE_CPU = """
LOAD_READER
reader = READER
room = (ctypes.c_float * 6)()
for y in (torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3).cuda().cpu(),
          torch.arange(6.0).reshape(2, 3).pin_memory()):
    torch.ops.devsan_reader.first(y)
    torch.ops.devsan_reader.doubled(y)
    reader.read_first(ctypes.c_void_p(y.data_ptr()))
    reader.read_all(room, ctypes.c_void_p(y.data_ptr()), ctypes.c_size_t(6))
    print(list(room), y.numpy().sum())
"""


def test_the_same_code_may_read_copies_on_the_host_and_pinned_memory(run):
    result = run(ON_THE_CPU)
    assert result.status == 0, result.stderr
    assert result.stdout == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0] 15.0\n" * 3
    assert not result.loud()


def test_without_the_flag_a_device_pointer_can_be_read(run):
    result = run(READ_PROGRAM.format(read=READS["an operator of an extension"]), guard=False)
    assert result.status == 0 and result.stdout == "before\nafter\n"
    assert not result.loud()


def test_the_option_of_a_bare_preload_guards_too(run, devsan, python, tmp_path, reader):
    source = (PRELUDE + READ_PROGRAM).replace("LOAD_READER", "").replace("READER", f"ctypes.CDLL({str(reader)!r})")
    result = Runner(devsan, python, tmp_path)(source.format(read=READS["a function by ctypes"]), sim=2, preload=True,
                                              options=["sim_guard=1"])
    assert result.status == SEGV
    [finding] = accesses(result)
    assert finding["where"]["source"].endswith("# here")


KEEP_AND_READ = """
y = torch.ones(4, device="cuda")
ctypes.c_float.from_address(y.data_ptr()).value  # here
"""


@pytest.mark.parametrize("how", ["environment", "before torch", "after torch", "turned off", "on again"])
def test_faulthandler_writes_its_traceback_and_the_access_is_found(run, how):
    before = "import faulthandler; faulthandler.enable()" if how == "before torch" else ""
    after = {"after torch": "faulthandler.enable()",
             "turned off": "faulthandler.enable(); torch.ones(1, device='cuda'); faulthandler.disable()",
             "on again": "faulthandler.enable(); torch.ones(1, device='cuda'); faulthandler.disable()\n"
                         "faulthandler.enable()"}
    result = run(after.get(how, "") + KEEP_AND_READ, before=before,
                 env={"PYTHONFAULTHANDLER": "1"} if how == "environment" else None)
    assert result.status == SEGV
    assert result.stderr.count("Fatal Python error: Segmentation fault") == (0 if how == "turned off" else 1)
    assert len(accesses(result)) == 1


@pytest.mark.parametrize("fault", [
    "ctypes.string_at(0)",
    "ctypes.string_at(0x10000)",
    "os.kill(os.getpid(), signal.SIGSEGV)",
    "signal.raise_signal(signal.SIGSEGV)",
    "faulthandler._sigsegv()",
    "ctypes.CDLL(None).abort()",
])
@pytest.mark.parametrize("dumps", [False, True])
def test_other_faults_are_what_they_are_without_the_flag(run, fault, dumps):
    body = ("faulthandler.enable()\n" if dumps else "") + f"""
torch.ones(4, device="cuda") * 2
print("before", flush=True)
{fault}
print("after", flush=True)
"""
    guarded, plain = run(body), run(body, guard=False)
    assert guarded.status == plain.status != 0 and guarded.stdout == plain.stdout
    assert guarded.stderr.count("Fatal Python error") == plain.stderr.count("Fatal Python error") == (1 if dumps else 0)
    assert not accesses(guarded)


def test_a_signal_that_is_ignored_or_handled_stays_so(run):
    body = """
caught = []
os.kill(os.getpid(), signal.SIGSEGV)
signal.signal(signal.SIGSEGV, lambda number, frame: caught.append(number))
for _ in range(3):
    os.kill(os.getpid(), signal.SIGSEGV)
    torch.ones(2, device="cuda")
print(len(caught))
"""
    result = run(body, before="import signal; signal.signal(signal.SIGSEGV, signal.SIG_IGN)")
    assert result.status == 0 and result.stdout == "3\n", result.stderr


RECOVER = """
reader = READER
{after}
x, y = torch.ones(4), torch.ones(4, device="cuda")
for tensor in (x, y, x, y):
    print(reader.can_be_read(ctypes.c_void_p(tensor.data_ptr())), end=" ")
print((y + 1).tolist())
"""


@pytest.mark.parametrize("early", [True, False])
def test_a_handler_of_the_program_recovers_as_without_devsan(run, reader, early):
    install = f"import ctypes; ctypes.CDLL({str(reader)!r}).recover_from_faults()"
    result = run(RECOVER.format(after="" if early else install), before=install if early else "")
    assert result.status == 0, result.stderr
    assert result.stdout == "1 0 1 0 [2.0, 2.0, 2.0, 2.0]\n"
    # A handler that was there before is called by ours; one that comes later takes its place.
    assert sum(f["count"] for f in accesses(result)) == (2 if early else 0)


def test_all_else_works_as_without_the_flag_and_leaves_no_page_open(run):
    program = (ROOT / "tests/integration/guard_work.py").read_text()
    guarded, plain = run(program), run(program, guard=False)
    assert guarded.status == plain.status == 0, guarded.stderr + plain.stderr
    told, opened = json.loads(guarded.stdout)
    assert told == json.loads(plain.stdout)[0]
    assert opened.pop("inside an operator") == 4096
    assert len(told) > 12 and {name: count for name, count in opened.items() if count} == {}
    assert not guarded.loud()


def test_a_child_process_inherits_the_guard(run):
    result = run("""
        reader = READER
        y = torch.ones(4, device="cuda")
        child = os.fork()
        if child == 0:
            reader.read_first(ctypes.c_void_p(y.data_ptr()))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (y + 1).tolist())
    """)
    assert result.status == 0 and result.stdout == f"{-signal.SIGSEGV} [2.0, 2.0, 2.0, 2.0]\n"


def ranges_permitted():
    return int(Path("/proc/sys/vm/max_map_count").read_text())


def test_many_small_tensors_at_once_stay_within_the_ranges_that_the_kernel_permits(run):
    result = run("""
        many = [torch.ones(2, device="cuda") for _ in range(20000)]
        for kept in (many, many[::2]):
            torch._foreach_add_(kept, 1)
        told = {str(t.tolist()) for t in many}
        print(sorted(told), sum(1 for _ in open("/proc/self/maps")) < 5000)
    """)
    assert result.status == 0, result.stderr
    assert result.stdout == "['[2.0, 2.0]', '[3.0, 3.0]'] True\n"


def test_where_the_kernel_permits_no_more_ranges_the_guard_is_given_up_and_said(run):
    if ranges_permitted() > 1 << 21:
        pytest.skip("so many ranges take longer than they are worth")
    result = run(f"""
        pages = {ranges_permitted() + 4096}
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        x = torch.arange(4.0, device="cuda")
        base = libc.mmap(None, pages * 4096, 0, 0x4022, -1, 0)
        for k in range(0, pages, 2):
            if libc.mprotect(base + k * 4096, 4096, 3) != 0:
                break
        told = (x * 2 + torch.ones(4, device="cuda")).sum().item()
        libc.munmap(ctypes.c_void_p(base), ctypes.c_size_t(pages * 4096))
        print(k < pages - 2, told, (x + 1).tolist())
    """)
    assert result.status == 0, result.stderr
    assert result.stdout == "True 16.0 [1.0, 2.0, 3.0, 4.0]\n"
    assert result.stderr.count("device pages are no longer guarded") == 1
