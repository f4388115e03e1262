"""Storages of simulated devices. torch's C++ code makes and resizes CUDA storages only in a build with CUDA."""

from .uncovered import Uncovered

SHARED_BETWEEN_PROCESSES = ("_share_cuda_", "_new_shared_cuda", "_release_ipc_counter_cuda")


def extend(torch, core):
    patch_untyped_storage(torch, core)
    replace_tensor_types(torch)
    for name in SHARED_BETWEEN_PROCESSES:
        setattr(torch.UntypedStorage, name, Uncovered(f"torch.UntypedStorage.{name}: sharing CUDA memory between processes"))


def is_cuda(device, torch):
    return device is not None and torch.device(device).type == "cuda"


def patch_untyped_storage(torch, core):
    base_new = torch.UntypedStorage.__new__
    base_resize = torch.UntypedStorage.resize_

    def new(cls, *args, device=None, **kwargs):
        if not is_cuda(device, torch):
            return base_new(cls, *args, **({} if device is None else {"device": device}), **kwargs)
        content = args[0] if args else kwargs.get("size", 0)
        if hasattr(content, "__index__"):
            tensor = torch.empty(content.__index__(), dtype=torch.uint8, device=device)
        else:
            tensor = torch.tensor(list(content), dtype=torch.uint8, device=device)
        return tensor.untyped_storage()

    def resize_(self, size):
        if self.device.type != "cuda":
            return base_resize(self, size)
        if not hasattr(size, "__index__"):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        core.resize_storage(self._cdata, size.__index__())
        return self

    torch.UntypedStorage.__new__ = staticmethod(new)
    torch.UntypedStorage.resize_ = resize_


def replace_tensor_types(torch):
    """torch.cuda.FloatTensor and its like: types that can be called, as in a build with CUDA."""
    import torch.cuda

    class TensorType(type):
        def __call__(cls, *args, **kwargs):
            kwargs.pop("device", None)
            return cls.cpu_type(*args, **kwargs).cuda()

        def __instancecheck__(cls, instance):
            return isinstance(instance, cls.original)

    for name, original in list(vars(torch.cuda).items()):
        if not name.endswith("Tensor") or type(original).__name__ != "tensortype":
            continue
        # Tensor.type() takes a type by its name, so the name is the qualified one.
        attributes = {"cpu_type": getattr(torch, name, None), "original": original, "__module__": "torch.cuda"}
        for attribute in ("dtype", "layout", "is_cuda", "is_sparse"):
            attributes[attribute] = getattr(original, attribute)
        setattr(torch.cuda, name, TensorType(f"torch.cuda.{name}", (), attributes))
