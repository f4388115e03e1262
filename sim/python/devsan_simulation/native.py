"""The C functions of libdevsan_sim.so that have no equivalent in torch._C."""

import ctypes
import pathlib

# void torch::utils::register_fork_handler_for_device_init(c10::DeviceType)
REGISTER_FORK_HANDLER = "_ZN5torch5utils37register_fork_handler_for_device_initEN3c1010DeviceTypeE"

# What they return for a device that is full; a failure of CUDA's is its code, which is above 0.
OUT_OF_MEMORY = -2

# The functions that may fail, and what they take besides the buffer for the reason.
FALLIBLE = {
    "devsan_sim_resize_storage": [ctypes.c_void_p, ctypes.c_size_t],
    "devsan_sim_wrap_backend": [ctypes.c_char_p, ctypes.c_char_p],
    "devsan_sim_begin_capture": [],
    "devsan_sim_end_capture": [ctypes.c_void_p],
    "devsan_sim_replay": [ctypes.c_void_p],
    "devsan_sim_not_covered": [ctypes.c_char_p],
}


def poison_fork(extension, device_type):
    """Makes torch's C++ code ask Python again, in a fork child, whether the device may be used."""
    library = ctypes.CDLL(str(pathlib.Path(extension.__file__).parent / "lib" / "libtorch_python.so"))
    register = getattr(library, REGISTER_FORK_HANDLER, None)
    if register is not None:  # older versions of torch always ask
        register.argtypes, register.restype = [ctypes.c_int8], None
        register(device_type)


class Graph:
    """What a capture kept; released with this object."""

    def __init__(self, library, address):
        self._library = library
        self._address = address

    def replay(self):
        self._library.call("devsan_sim_replay", self._address)

    def __del__(self):
        self._library.destroy_graph(self._address)


class Library:
    def __init__(self, path, extension):
        library = ctypes.CDLL(path)
        self._extension = extension
        self._next_generator_is_default = library.devsan_sim_next_generator_is_default
        self._next_generator_is_default.argtypes = [ctypes.c_int]
        self._next_generator_is_default.restype = None
        self._functions = {}
        for name, arguments in FALLIBLE.items():
            function = self._functions[name] = getattr(library, name)
            function.argtypes, function.restype = [*arguments, ctypes.c_char_p, ctypes.c_size_t], ctypes.c_int
        self.restore_context = library.devsan_sim_restore_context
        self.restore_context.argtypes, self.restore_context.restype = [], None
        self._is_capturing = library.devsan_sim_is_capturing
        self._is_capturing.restype = ctypes.c_int
        self.destroy_graph = library.devsan_sim_destroy_graph
        self.destroy_graph.argtypes, self.destroy_graph.restype = [ctypes.c_void_p], None

    def default_generator(self, index):
        """The generator object of a device's default generator."""
        self._next_generator_is_default(1)
        try:
            return self._extension.Generator(device=self._extension.device("cuda", index))
        finally:
            self._next_generator_is_default(0)

    def resize_storage(self, storage, size):
        """`storage` is the address of a StorageImpl."""
        self.call("devsan_sim_resize_storage", storage, size)

    def wrap_backend(self, group_name, backend_name):
        """Gives the process group of that name, which has a CPU backend, a backend for CUDA over it."""
        self.call("devsan_sim_wrap_backend", group_name.encode(), backend_name.encode())

    def is_capturing(self):
        return bool(self._is_capturing())

    def begin_capture(self):
        self.call("devsan_sim_begin_capture")

    def end_capture(self):
        """The graph that was captured."""
        graph = ctypes.c_void_p()
        self.call("devsan_sim_end_capture", ctypes.byref(graph))
        return Graph(self, graph)

    def not_covered(self, what):
        """The exception for what the simulation does not have. It is made in C++, where devsan sees it."""
        reason = ctypes.create_string_buffer(2048)
        self._functions["devsan_sim_not_covered"](what.encode(), reason, len(reason))
        return NotImplementedError(reason.value.decode(errors="replace"))

    def call(self, name, *arguments):
        """The functions return 0, or leave the reason of their failure in a buffer."""
        reason = ctypes.create_string_buffer(2048)
        status = self._functions[name](*arguments, reason, len(reason))
        if status != 0:
            raise self._error(status, reason.value.decode(errors="replace"))

    def _error(self, status, reason):
        if status == OUT_OF_MEMORY:
            return self._extension.OutOfMemoryError(reason)
        if status < 0:
            return RuntimeError(reason)
        error = self._extension.AcceleratorError(reason)
        error.error_code = status
        return error
