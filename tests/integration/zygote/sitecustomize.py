"""A Python that imports torch and then waits: each program that it is asked for runs in a fork of it.

The interpreter imports this module by its name, before it runs its main program. In the parent the import never comes
to its end. In a child it does, with the name of the main program exchanged, so that the interpreter itself goes on to
run the program: frames, tracebacks, exit status and signals are those of a plain start. zygotes.py holds the other end.
"""

import atexit
import gc
import os
import sys


def buffers_of(text):
    """Addresses of the interpreter's own copies of an argument."""
    import ctypes

    api = ctypes.pythonapi
    api._Py_GetConfig.restype = ctypes.c_void_p
    word = ctypes.sizeof(ctypes.c_void_p)
    wanted = bytes(ctypes.create_unicode_buffer(text))
    with open("/proc/self/mem", "rb", buffering=0) as memory:

        def read(address, size):
            try:
                return os.pread(memory.fileno(), size, address)
            except (OSError, OverflowError):  # not the address of anything
                return b""

        def words(address, count):
            got = read(address, count * word)
            return [int.from_bytes(got[at:at + word], sys.byteorder) for at in range(0, len(got), word)]

        # What the configuration points to: strings, and lists of strings.
        pointers = words(api._Py_GetConfig(), 128)
        candidates = {*pointers, *(entry for pointer in pointers for entry in words(pointer, 2))}
        return [address for address in candidates if read(address, len(wanted)) == wanted]


def exchange_main_program(buffers, program):
    import ctypes

    text = ctypes.create_unicode_buffer(program)
    for address in buffers:
        ctypes.memmove(address, text, ctypes.sizeof(text))


def collect_at_end():
    """Where the types of a loaded library are nanobind's, as those of triton in torch 2.15 are: of each one that no
    collection finds, the library complains on stderr."""
    library = sys.modules.get("triton._C.libtriton")
    if type(getattr(getattr(library, "ir", None), "builder", None)).__module__ == "nanobind":
        atexit.register(gc.unfreeze)


def become(request, buffers):
    """In a child: what a plain start of the program would find."""
    exchange_main_program(buffers, request["program"])
    sys.argv[:] = [request["program"], *request["args"]]
    sys.orig_argv[1:] = sys.argv
    sys.path.remove(os.path.dirname(__file__))
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    collect_at_end()


def serve(requests, answers, placeholder):
    """Returns in each child. The parent ends with whoever asks."""
    import json

    buffers = buffers_of(placeholder)
    assert len(buffers) >= 2, "the interpreter keeps the name of its main program elsewhere"
    os.write(answers, b"ready\n")
    lines = open(requests)
    for line in lines:
        child = os.fork()
        if child == 0:
            break
        os.write(answers, b"%d\n" % child)
        os.write(answers, b"%d\n" % os.waitpid(child, 0)[1])
    else:
        os._exit(0)
    lines.close()
    os.close(answers)
    become(json.loads(line), buffers)


def main():
    requests, answers = (int(fd) for fd in os.environ["DEVSAN_ZYGOTE"].split(","))
    import torch._dynamo  # noqa: F401  which every optimizer imports

    # The objects of torch are many: no child looks for garbage among them, least of all at its end.
    gc.freeze()
    serve(requests, answers, sys.orig_argv[1])


main()
