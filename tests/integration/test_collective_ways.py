"""A collective is recorded once, and the same of it, whichever way it is entered: by a function of its group, by an
operator of c10d, by the function of a group that Python defines."""

import pytest

from test_collectives_alive import collectives_of

FAKE_GROUP = """
import warnings, torch
import torch.distributed as dist
import torch.testing._internal.distributed.fake_pg as fake
warnings.simplefilter("ignore")
dist.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=2)
group = dist.group.WORLD
one, two = (lambda: torch.ones(4)), (lambda: torch.ones(8))
"""

# What the functions of a group that need no reduction are called with, and the operator that they call.
BOTH_WAYS = FAKE_GROUP + """
boxed, ops = group.boxed(), torch.ops.c10d
ways = [
    (lambda: group.broadcast([one()]), lambda: ops.broadcast_([one()], boxed, 0, 0)),
    (lambda: group.allgather([[one(), one()]], [one()]), lambda: ops.allgather_([[one(), one()]], [one()], boxed)),
    (lambda: group._allgather_base(two(), one()), lambda: ops._allgather_base_(two(), one(), boxed)),
    (lambda: group.allgather_coalesced([[one()], [one()]], [one()]),
     lambda: ops.allgather_coalesced_([[one()], [one()]], [one()], boxed)),
    (lambda: group.allgather_into_tensor_coalesced([two()], [one()]),
     lambda: ops.allgather_into_tensor_coalesced_([two()], [one()], boxed)),
    (lambda: group.gather([[one(), one()]], [one()]), lambda: ops.gather_([[one(), one()]], [one()], boxed, 0)),
    (lambda: group.scatter([one()], [[one(), one()]]), lambda: ops.scatter_([one()], [[one(), one()]], boxed, 0)),
    (lambda: group.alltoall_base(two(), two(), [], []), lambda: ops.alltoall_base_(two(), two(), boxed, [], [])),
    (lambda: group.alltoall([one(), one()], [one(), one()]),
     lambda: ops.alltoall_([one(), one()], [one(), one()], boxed)),
    (lambda: group.send([one()], 1, 0), lambda: ops.send([one()], boxed, 1, 0)),
    (lambda: group.recv([one()], 1, 0), lambda: ops.recv_([one()], boxed, 1, 0)),
    (lambda: group.recv_anysource([one()], 0), lambda: ops.recv_any_source_([one()], boxed, 0)),
    (lambda: group.barrier(), lambda: ops.barrier(torch.empty(1, dtype=torch.uint8), boxed, [])),
]
for by_function, by_operator in ways[PART]:
    by_function()
    by_operator()
dist.destroy_process_group()
"""

REDUCTIONS = FAKE_GROUP + """
group.allreduce([one()], dist.AllreduceOptions())
group.allreduce_coalesced([one(), two()], dist.AllreduceCoalescedOptions())
group.reduce([two()], dist.ReduceOptions())
group.reduce_scatter([one()], [[one(), one()]])
group._reduce_scatter_base(one(), two())
group.reduce_scatter_tensor_coalesced([one(), one()], [two(), two()])
group.barrier()
dist.destroy_process_group()
"""

OWN_GROUP = FAKE_GROUP + """
class Own(dist.ProcessGroup):
    def broadcast(self, tensors, options):
        return group.broadcast(tensors, options)

own = Own(0, 2)
backend = dist.new_group([0, 1])._get_backend(torch.device("cpu"))  # a group is called as its backend is
own._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, backend)
own._set_group_name("own")
own.allreduce([one()], dist.AllreduceOptions())        # the base class's function
torch.ops.c10d.broadcast_([one()], own.boxed(), 0, 0)  # the operator asks the backend itself
own.broadcast([two()], dist.BroadcastOptions())        # the group's own function, which enters the other group
dist.destroy_process_group()
"""


def recorded(run_python, program):
    run = run_python(program, start=True)
    assert run.status == 0, run.stderr
    return collectives_of(run)


def facts(call):
    return {key: call[key] for key in ("name", "group", "bytes", "dtype", "device", "peer", "state", "end_told")}


# A report tells of the last 16 collectives.
@pytest.mark.parametrize("part, told", [
    (":6", [("broadcast", 16, None), ("all_gather", 32, None), ("all_gather_into_tensor", 32, None),
            ("all_gather_coalesced", 32, None), ("all_gather_into_tensor_coalesced", 32, None), ("gather", 32, None)]),
    ("6:", [("scatter", 32, None), ("all_to_all_single", 32, None), ("all_to_all", 32, None), ("send", 16, 1),
            ("recv", 16, 1), ("recv", 16, None), ("barrier", 1, None)])])
def test_a_function_of_a_group_and_the_operator_that_it_calls_are_each_recorded_once_and_alike(run_python, part, told):
    calls = recorded(run_python, BOTH_WAYS.replace("PART", part))
    functions, operators = calls[::2], calls[1::2]
    assert [(call["name"], call["bytes"], call["peer"]) for call in functions] == told
    assert list(map(facts, functions)) == list(map(facts, operators))
    numbers = [call["sequence"] for call in calls if call["name"] not in ("send", "recv")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_reductions_that_a_groups_functions_enter_are_recorded_once_with_the_size_of_all_their_tensors(run_python):
    calls = recorded(run_python, REDUCTIONS)
    assert [(call["name"], call["bytes"], call["sequence"]) for call in calls] == [
        ("all_reduce", 16, 1), ("all_reduce_coalesced", 48, 2), ("reduce", 32, 3), ("reduce_scatter", 32, 4),
        ("reduce_scatter_tensor", 32, 5), ("reduce_scatter_tensor_coalesced", 64, 6), ("barrier", 1, 7)]
    lines = [call["where"]["line"] for call in calls]
    assert lines == list(range(lines[0], lines[0] + 7))


def test_a_group_that_python_defines_is_recorded_where_an_operator_of_c10d_is_called(run_python):
    calls = recorded(run_python, OWN_GROUP)
    assert [(call["name"], call["group"], call["bytes"]) for call in calls] == [
        ("all_reduce", "own", 16), ("broadcast", "own", 16), ("broadcast", "0", 32)]


def test_tensors_of_a_collective_on_two_devices_are_a_note_with_the_names_of_the_operators_arguments(run_python):
    run = run_python("""
        import tempfile, torch
        import torch.distributed as dist
        dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
        here, nowhere = torch.ones(4), torch.ones(4, device="meta")
        dist.group.WORLD.allreduce([here, nowhere])
        dist.group.WORLD._allgather_base(here, nowhere)
        dist.group.WORLD.alltoall([here], [nowhere])
        dist.destroy_process_group()
    """, start=True)
    assert run.status == 0, run.stderr
    notes = {f["op"]: [(o["arg"], o["device"], o["odd"]) for o in f["operands"]] for f in run.report["findings"]}
    assert notes == {
        "c10d::allreduce_": [("tensors[0]", "cpu", False), ("tensors[1]", "meta", True)],
        "c10d::_allgather_base_": [("output_tensor", "cpu", False), ("input_tensor", "meta", True)],
        "c10d::alltoall_": [("output_tensors[0]", "cpu", False), ("input_tensors[0]", "meta", True)]}
