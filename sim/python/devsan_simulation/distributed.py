"""ProcessGroupNCCL of torch._C._distributed_c10d, with what torch 2.15 has beside it, and gloo's part for CUDA, which a
build for CPUs lacks: the collectives of gloo, on the CPU's view of a simulated device's memory. sim/collectives.cpp does
the work."""

import datetime
import itertools

from . import nccl_options


def extend(c10d, core):
    if getattr(getattr(c10d, "ProcessGroupNCCL", None), "__module__", None) == __name__:
        return  # a build with CUDA has one of its own, which this one replaces
    import torch

    names = (f"devsan_simulation/{number}" for number in itertools.count())
    options = nccl_options.options_type(c10d)
    kinds = {"nccl": group_type(c10d, core, names, "ProcessGroupNCCL", "nccl", options)}
    if torch.__version__ >= (2, 15):  # where "nccl" means the second of them
        kinds["nccl2"] = group_type(c10d, core, names, "ProcessGroupNCCL2", "nccl2", options)
        kinds["nccl-lazy"] = group_type(c10d, core, names, "ProcessGroupNCCLLazy", "nccl-lazy", c10d.Backend.Options)
    for kind in kinds.values():
        setattr(c10d, kind.__name__, kind)
    c10d._DEFAULT_PG_NCCL_TIMEOUT = nccl_options.TIMEOUT
    extend_backend(c10d.Backend, kinds, options)
    c10d.ProcessGroup.split_group = split_group(c10d, kinds, c10d.ProcessGroup.split_group)
    c10d.ProcessGroup._register_backend = register_backend(c10d, core, names, c10d.ProcessGroup._register_backend)


def group_type(c10d, core, names, name, backend_name, options_type):
    """One of torch's implementations of NCCL."""

    class OfBackend(type):
        """A backend is an object of c10d's own class, told by its name."""

        def __instancecheck__(cls, instance):
            return isinstance(instance, c10d.Backend) and instance.name() == backend_name

    def make(cls, store, rank, size, options=None, device_id=None):
        timeout = getattr(options, "_timeout", nccl_options.TIMEOUT)
        if isinstance(options, datetime.timedelta):
            timeout = options
        gloo = c10d.ProcessGroupGloo(store, rank, size, timeout=timeout)
        return over_gloo(c10d, core, next(names), gloo, backend_name)

    members = {"__new__": make, "__module__": __name__, "Options": options_type, "NCCLConfig": nccl_options.NCCLConfig}
    return OfBackend(name, (), members)


def extend_backend(backend, kinds, options):
    """What the Python bindings of a real ProcessGroupNCCL have besides; there is nothing to group, connect or number here."""
    base_splitting = getattr(backend, "supports_splitting", None)
    base_split = getattr(backend, "split", None)

    def supports_splitting(self):
        return self.name() in kinds or (base_splitting is not None and base_splitting.fget(self))

    def set_default_timeout(self, timeout):
        if hasattr(self, "set_timeout"):
            self.set_timeout(timeout)

    def split(self, store, ranks, opts):
        if self.name() not in kinds:
            return base_split(self, store, ranks, opts)
        return kinds[self.name()](store, ranks.index(self.rank()), len(ranks), opts)

    backend.supports_splitting = property(supports_splitting)
    if base_split is not None:
        backend.split = split
    backend.options = property(lambda self: options())
    backend.uid = property(id)
    backend._group_start = backend._group_end = lambda self: None
    backend._is_initialized = lambda self: True
    backend._set_default_timeout = set_default_timeout
    backend.perform_nocolor_split = lambda self, device: None


def split_group(c10d, kinds, base_split):
    """ProcessGroup.split_group, of a group whose backend for CUDA is a simulated one."""

    def split(self, ranks, timeout=None, opts=None, group_name=None, group_desc=None, device_types=None):
        import torch

        devices = {device.type for device in device_types or self._device_types}
        kind = kinds.get(self._get_backend(torch.device("cuda")).name()) if "cuda" in devices else None
        if kind is None:
            return base_split(self, ranks, timeout, opts, group_name, group_desc, *([device_types] if device_types else []))
        if self.rank() not in ranks:
            return None
        timeout = timeout or getattr(opts, "_timeout", nccl_options.TIMEOUT)
        name = group_name or f"{self.group_name}:split:{list(ranks)}"
        order = ranks if torch.__version__ >= (2, 14) else sorted(ranks)
        rank, size = order.index(self.rank()), len(ranks)
        store = c10d.PrefixStore(f"{name}/", self.get_group_store())
        made = c10d.ProcessGroup(store, rank, size)
        types = c10d.ProcessGroup.BackendType
        made._set_default_backend(types.NCCL)
        if "cpu" in devices:
            gloo = c10d.ProcessGroupGloo(c10d.PrefixStore("cpu/", store), rank, size, timeout=timeout)
            made._register_backend(torch.device("cpu"), types.GLOO, gloo)
        nccl = kind(c10d.PrefixStore("cuda/", store), rank, size, timeout)
        made._register_backend(torch.device("cuda"), types.NCCL, nccl)
        made._set_group_name(name)
        made._set_group_desc(group_desc or f"{self.group_desc}:split")
        return made

    return split


def register_backend(c10d, core, names, base_register):
    """ProcessGroup._register_backend: one gloo serves both devices, and in a build for CPUs it crashes with CUDA tensors."""

    def register(self, device, backend_type, backend=None):
        if device.type != "cuda" or backend is None or backend.name() != "gloo":
            return base_register(self, device, backend_type, backend)
        # Under the type of the CPU's backend the group would use that one for both.
        simulated = over_gloo(c10d, core, next(names), backend, "gloo")
        return base_register(self, device, c10d.ProcessGroup.BackendType.CUSTOM, simulated)

    return register


def over_gloo(c10d, core, name, gloo, backend_name):
    """A backend for CUDA over gloo. C++ finds a process group by its name: that is how the one reaches the other."""
    import torch

    group = c10d.ProcessGroup(c10d.HashStore(), gloo.rank(), gloo.size())
    group._register_backend(torch.device("cpu"), c10d.ProcessGroup.BackendType.GLOO, gloo)
    c10d._register_process_group(name, group)
    try:
        core.wrap_backend(name, backend_name)
        return group._get_backend(torch.device("cuda"))
    finally:
        c10d._unregister_process_group(name)
