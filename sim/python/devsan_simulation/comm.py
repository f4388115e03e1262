"""The functions of torch._C behind torch.cuda.comm, torch.cuda.nccl and nn.DataParallel: tensors of one process copied
and added between its devices."""


def names(extension, core):
    return {
        "_broadcast": broadcast,
        "_broadcast_out": broadcast_out,
        "_broadcast_coalesced": broadcast_coalesced,
        "_scatter": scatter,
        "_scatter_out": scatter_out,
        "_gather": gather,
        "_gather_out": gather_out,
        "_nccl_all_reduce": all_reduce,
        "_nccl_reduce": reduce,
        "_nccl_broadcast": nccl_broadcast,
        "_nccl_all_gather": all_gather,
        "_nccl_reduce_scatter": reduce_scatter,
    }


def cuda(index):
    import torch

    return torch.device("cuda", index)


def require(condition, message):
    if not condition:
        raise RuntimeError(message)


def require_cuda(tensors, words):
    for position, tensor in enumerate(tensors):
        require(tensor.is_cuda, f"{words}, but got a tensor at position {position} on {tensor.device}")


# ---- torch.cuda.comm


def broadcast(tensor, devices):
    return [tensor if tensor.device == cuda(index) else tensor.to(cuda(index)) for index in devices]


def broadcast_out(tensor, out_tensors):
    require_cuda(out_tensors, "Expected all output tensors to be CUDA tensors")
    for out in out_tensors:
        require(out.shape == tensor.shape, f"Expected all output tensors to have same shape as the source tensor "
                                           f"{list(tensor.shape)}, but got {list(out.shape)}")
        if out is not tensor:
            out.copy_(tensor, non_blocking=True)
    return list(out_tensors)


def broadcast_coalesced(tensors, devices, buffer_size):
    require(all(tensor.device == cuda(devices[0]) for tensor in tensors), f"All tensors must be on devices[0]: {devices[0]}")
    return [list(tensors), *([tensor.to(cuda(index)) for tensor in tensors] for index in devices[1:])]


def scatter(tensor, devices, chunk_sizes=None, dim=0, streams=None):
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    else:
        require(sum(chunk_sizes) == tensor.size(dim), "given chunk sizes don't sum up to the tensor's size "
                f"(sum(chunk_sizes) == {sum(chunk_sizes)}, but expected {tensor.size(dim)})")
        require(len(chunk_sizes) == len(devices), "Expected devices and chunk_sizes to be of same length, but got "
                f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}")
        chunks = tensor.split(list(chunk_sizes), dim)
    return [chunk.to(cuda(index), non_blocking=True) for chunk, index in zip(chunks, devices)]


def scatter_out(tensor, out_tensors, dim=0, streams=None):
    require_cuda(out_tensors, "Expected all output tensors to be CUDA tensors")
    require(sum(out.size(dim) for out in out_tensors) == tensor.size(dim),
            f"Total size for output tensors along scatter dim {dim} does not match the source tensor size {tensor.size(dim)}")
    for out, chunk in zip(out_tensors, tensor.split([out.size(dim) for out in out_tensors], dim)):
        out.copy_(chunk, non_blocking=True)
    return list(out_tensors)


def gather(tensors, dim, destination_index=None):
    import torch

    require(len(tensors) > 0, "Expected at least one tensor to gather from")
    require_cuda(tensors, "Expected all input tensors to be CUDA tensors")
    if destination_index is None:
        destination_index = torch.cuda.current_device()
    target = torch.device("cpu") if destination_index == -1 else cuda(destination_index)
    return torch.cat([tensor.to(target) for tensor in tensors], dim)


def gather_out(tensors, out_tensor, dim):
    require_cuda(tensors, "Expected all input tensors to be CUDA tensors")
    require(sum(tensor.size(dim) for tensor in tensors) == out_tensor.size(dim),
            f"Expected out tensor to have a size at dimension {dim} of the sum of the inputs', but got {out_tensor.size(dim)}")
    for part, tensor in zip(out_tensor.split([tensor.size(dim) for tensor in tensors], dim), tensors):
        part.copy_(tensor, non_blocking=True)
    return out_tensor


# ---- torch.cuda.nccl, whose operations are numbered as NCCL numbers them

SUM, PRODUCT, MAX, MIN, AVERAGE = range(5)


def combined(inputs, op, device):
    import torch

    stacked = torch.stack([tensor.detach().to(device) for tensor in inputs])
    results = {SUM: lambda: stacked.sum(0), PRODUCT: lambda: stacked.prod(0), MAX: lambda: stacked.amax(0),
               MIN: lambda: stacked.amin(0), AVERAGE: lambda: stacked.sum(0) / len(inputs)}
    require(op in results, f"NCCL has no reduction {op}")
    return results[op]()


def write(target, values):
    """Into the tensor's memory, unseen by autograd, as NCCL writes."""
    target.detach().copy_(values.reshape(target.shape))


def require_collective(*lists):
    for tensors in lists:
        require_cuda(tensors, "input and output elements have to be on GPUs")
        require(all(tensor.is_contiguous() for tensor in tensors), "input and output elements have to be contiguous")
        require(len({tensor.device for tensor in tensors}) == len(tensors), "inputs must be on unique devices")


def reduce(inputs, output, root=0, op=SUM, streams=None, comms=None):
    require_collective(inputs, [output])
    write(output, combined(inputs, op, output.device))


def all_reduce(inputs, outputs, op=SUM, streams=None, comms=None):
    require_collective(inputs, outputs)
    result = combined(inputs, op, inputs[0].device)
    for output in outputs:
        write(output, result)


def nccl_broadcast(inputs, root=0, streams=None, comms=None):
    require_collective(inputs)
    for tensor in inputs:
        write(tensor, inputs[root].detach())


def all_gather(inputs, outputs, streams=None, comms=None):
    import torch

    require_collective(inputs, outputs)
    for output in outputs:
        write(output, torch.cat([tensor.detach().to(output.device).flatten() for tensor in inputs]))


def reduce_scatter(inputs, outputs, op=SUM, streams=None, comms=None):
    require_collective(inputs, outputs)
    parts = combined(inputs, op, inputs[0].device).flatten().chunk(len(outputs))
    for output, part in zip(outputs, parts):
        write(output, part)
