"""The C functions of libdevsan_sim.so that have no equivalent in torch._C."""

import ctypes
import pathlib

# void torch::utils::register_fork_handler_for_device_init(c10::DeviceType)
REGISTER_FORK_HANDLER = "_ZN5torch5utils37register_fork_handler_for_device_initEN3c1010DeviceTypeE"


def poison_fork(extension, device_type):
    """Makes torch's C++ code ask Python again, in a fork child, whether the device may be used."""
    library = ctypes.CDLL(str(pathlib.Path(extension.__file__).parent / "lib" / "libtorch_python.so"))
    register = getattr(library, REGISTER_FORK_HANDLER, None)
    if register is not None:  # older versions of torch always ask
        register.argtypes, register.restype = [ctypes.c_int8], None
        register(device_type)


class Library:
    def __init__(self, path):
        library = ctypes.CDLL(path)
        self._next_generator_is_default = library.devsan_sim_next_generator_is_default
        self._next_generator_is_default.argtypes = [ctypes.c_int]
        self._next_generator_is_default.restype = None
        self._resize_storage = library.devsan_sim_resize_storage
        self._resize_storage.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        self._resize_storage.restype = ctypes.c_int
        self._wrap_backend = library.devsan_sim_wrap_backend
        self._wrap_backend.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        self._wrap_backend.restype = ctypes.c_int

    def default_generator(self, extension, index):
        """The generator object of a device's default generator."""
        self._next_generator_is_default(1)
        try:
            return extension.Generator(device=extension.device("cuda", index))
        finally:
            self._next_generator_is_default(0)

    def resize_storage(self, storage, size):
        """`storage` is the address of a StorageImpl."""
        self._call(self._resize_storage, storage, size)

    def wrap_backend(self, group_name):
        """Gives the process group of that name, which has a CPU backend, a backend for CUDA over it."""
        self._call(self._wrap_backend, group_name.encode())

    def _call(self, function, *arguments):
        """The functions return 0, or leave the reason of their failure in a buffer."""
        error = ctypes.create_string_buffer(2048)
        if function(*arguments, error, len(error)) != 0:
            raise RuntimeError(error.value.decode(errors="replace"))
