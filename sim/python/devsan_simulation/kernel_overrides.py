"""torch._native: kernels in Triton and other languages, which the last step of `import torch` puts over CUDA's own.
They are compiled for the driver's device, and come after whatever the simulation has registered."""

import importlib.util
import sys

KEYS = ["CUDA", "AutogradCUDA"]


def keep_out():
    """To be called before torch imports the module."""
    sys.meta_path.insert(0, AfterImport("torch._native", take_off))


def take_off(native):
    """The operators that the kernels have of their own stay, and say that they are not covered."""
    registry = native.registry
    deregister = getattr(registry, "deregister_op_overrides", None)
    if deregister is None:
        return
    deregister(disable_dispatch_keys=KEYS)
    libraries = getattr(registry, "_libs", {})
    for name in [name for name in libraries if name[1] in KEYS]:
        libraries.pop(name)._destroy()


class AfterImport:
    """Finds one module, once, as it would be found without it, and calls `action` with it when its code has run."""

    def __init__(self, name, action):
        self._name = name
        self._action = action

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self._action(module)

            spec.loader.exec_module = exec_module
        return spec
