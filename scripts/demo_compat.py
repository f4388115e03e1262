"""What deepspeed 0.12.3 to 0.14.2 (November 2023 to April 2024) needs so that it can be imported beside today's torch and
numpy: the names that were removed since, and some quiet. Nothing of ZeRO is touched."""

import contextlib
import io
import logging
import warnings

import numpy
import torch.distributed.elastic.agent.server.api as elastic_agent


def import_deepspeed():
    """Imports DeepSpeed without its account of which optional C++ extensions could not be compiled on this machine."""
    restore_removed_names()
    # It calls what torch has since renamed: custom_fwd, all_gather_into_tensor, reduce_scatter_tensor.
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", message=r"barrier\(\): using the device under current context")
    logging.disable(logging.INFO)
    with contextlib.redirect_stdout(io.StringIO()):
        import deepspeed
    return deepspeed


def restore_removed_names():
    # torch 2.4 removed this helper; deepspeed/elasticity/elastic_agent.py imports it. Only elastic training calls it.
    add(elastic_agent, "_get_socket_with_port", unavailable("_get_socket_with_port"))
    # torch has no logger of that name either; deepspeed 0.12.3 imports it there, also for elastic training alone.
    add(elastic_agent, "log", logging.getLogger("torch.distributed.elastic"))
    # numpy 2.0 removed this constant; deepspeed/autotuning/scheduler.py imports it. Only the autotuner uses it.
    add(numpy, "BUFSIZE", 8192)


def add(module, name, value):
    if not hasattr(module, name):
        setattr(module, name, value)


def unavailable(name):
    def function(*args, **kwargs):
        raise NotImplementedError(f"{name} is gone from torch; the demo does not need elastic training")

    return function
