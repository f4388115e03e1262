"""What devsan expects without a rule: what breaks it, what switches it off, and what must not be taken for it."""

import subprocess

import pytest


def misplaced(run):
    return [f for f in run.findings if f["kind"] == "wrong-placement"]


# A layer gets a parameter after it was moved, which no operator takes before the step is over.
LEFT_BEHIND = """
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, 4))

        def forward(self, x):
            return x @ self.weight

    layer = Scaled().cuda()
    layer.scale = torch.nn.Parameter(torch.ones(4))
    layer(torch.ones(2, 4, device="cuda")).sum().backward()
"""


def test_a_parameter_that_stayed_where_its_module_was_moved_from(run_python):
    [finding] = misplaced(run_python(LEFT_BEHIND, sim=1))
    expectation = finding["expectation"]
    assert (expectation["rule"], expectation["file"]) == ("module-on-one-device", None)
    assert (expectation["expected"], expectation["found"]) == ("cuda:0", "cpu")
    assert expectation["names"] == ["layer.scale"]
    assert "torch.ones(4)" in finding["where"]["source"]


def test_the_table_of_what_is_misplaced_has_no_empty_columns(run_python, devsan):
    run = run_python(LEFT_BEHIND, sim=1)
    def written(*how):
        return subprocess.run([devsan, "view", run.out, *how], capture_output=True, text=True, check=True).stdout

    [heading] = [line.split() for line in written().splitlines() if line.split()[:1] == ["operand"]]
    [row] = [line.split() for line in written().splitlines() if line.split()[:2] == ["▸", "layer.scale"]]
    assert (heading, row[1:]) == (["operand", "device"], ["layer.scale", "cpu"])
    assert "| | Written | Device |\n| --- | --- | --- |\n| ▸ | `layer.scale` | `cpu` |\n" in written("--markdown")


@pytest.mark.parametrize("off", ["module-on-one-device", "all"])
def test_an_expectation_is_switched_off_by_its_name(run_python, off):
    assert misplaced(run_python(LEFT_BEHIND, sim=1, preload=True, options=[f"expect_not={off}"])) == []


def test_a_file_of_rules_switches_an_expectation_off(run_python, tmp_path):
    (tmp_path / "rules.toml").write_text('off = "module-on-one-device"')
    assert misplaced(run_python(LEFT_BEHIND, sim=1, options=["--rules", tmp_path / "rules.toml"])) == []


def test_another_name_switches_nothing_off(run_python):
    run = run_python(LEFT_BEHIND, sim=1, preload=True, options=["expect_not=average-beside-model"])
    assert len(misplaced(run)) == 1


STATE = """
    import torch

    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4))).cuda(0)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(2):
        hidden = torch.ones(2, 4, device="cuda:0")
        for layer in model:
            hidden = layer(hidden.to(layer.weight.device))
        hidden.sum().backward()
        if step == 1:
            break
        optimizer.step()
        {between}
"""


def test_state_that_a_moved_parameter_left_behind(run_python):
    findings = misplaced(run_python(STATE.format(between='model[2].to("cuda:1")'), sim=2))
    names = [name for f in findings for name in f["expectation"]["names"]]
    assert "exp_avg of model.2.weight" in names and not [name for name in names if ".1." in name]
    assert {f["expectation"]["rule"] for f in findings} == {"state-beside-parameter"}
    assert {(f["expectation"]["expected"], f["expectation"]["found"]) for f in findings} == {("cuda:1", "cuda:0")}


@pytest.mark.parametrize("kept", ["optimizer.state.values()", "[optimizer.state[model[2].weight]]"])
def test_state_that_a_line_put_on_the_host_is_offloaded(run_python, kept):
    between = f"for state in {kept}: state.update({{key: value.cpu() for key, value in state.items()}})"
    assert misplaced(run_python(STATE.format(between=between), sim=2)) == []


def test_state_of_an_optimizer_that_is_gone_is_not_that_of_the_next_one_of_its_name(run_python):
    """The next one's parameters are elsewhere, and it ends before it has any state."""
    run = run_python("""
        import torch

        def train(device, steps):
            body, head = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 4).to(device)
            optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()])
            for _ in range(steps):
                head(body(torch.ones(2, 4, device="cuda")).to(device)).sum().backward()
                optimizer.step()

        train("cuda:0", steps=2)
        train("cuda:1", steps=1)
        """, sim=2)
    assert run.status == 0, run.stderr
    assert misplaced(run) == []


AVERAGE = """
    import torch
    from torch.optim.swa_utils import AveragedModel

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    {before}
    model.cuda()
    {behind}
    for step in range(2):
        model(torch.ones(2, 4, device="cuda")).sum().backward()
"""


def test_an_average_that_was_copied_before_the_model_moved(run_python):
    findings = misplaced(run_python(AVERAGE.format(before="average = AveragedModel(model)", behind="pass"), sim=1))
    assert findings and {f["expectation"]["rule"] for f in findings} == {"average-beside-model"}
    assert findings[0]["expectation"]["expected"] == "cuda:0"


@pytest.mark.parametrize("before, behind", [
    ("pass", "average = AveragedModel(model)"),  # copied where the model is
    ("pass", "average = AveragedModel(model, device='cpu')"),  # put on the host by a line
    ("average = AveragedModel(model)", "average.cuda()"),  # brought along
    ("average = AveragedModel(model, device='cpu')", "pass"),  # left on the host by a line, before the model moved
    ("average = AveragedModel(model)", "average.to('cpu')"),  # the same, afterwards
])
def test_an_average_that_is_where_a_line_put_it(run_python, before, behind):
    assert misplaced(run_python(AVERAGE.format(before=before, behind=behind), sim=1)) == []


# An optimizer that says where its partitions belong, by the names that DeepSpeed's has.
PARTITIONED = """
    import enum
    import torch

    class Device(str, enum.Enum):
        cpu = "cpu"

    class DeepSpeedZeroOptimizer_Stage3:
        def __init__(self, offload, on_gpu=0):
            self.offload_optimizer = offload
            self.device = Device.cpu if offload else "cuda:1"
            self.offloaded_states = set()
            if offload:
                self.subgroup_to_device = {{index: "cuda" if index < on_gpu else "cpu" for index in range(3)}}
            homes = self.subgroup_to_device if offload else ["cuda:1"] * 3
            self.fp32_partitioned_groups_flat = [torch.ones(4, device=homes[index]) for index in range(3)]

    class Engine(torch.nn.Linear):
        pass

    engine = Engine(4, 4, device="cuda:1")
    engine.optimizer = DeepSpeedZeroOptimizer_Stage3({arguments})
    groups = engine.optimizer.fp32_partitioned_groups_flat
    {line}
    del groups
    for step in range(2):
        engine(torch.ones(2, 4, device="cuda:1")).sum().backward()
"""


@pytest.mark.parametrize("arguments, line, expected, found", [
    ("True", "groups[1].data = groups[1].data.cuda(1)", "cpu", "cuda:1"),
    ("True", "groups[1] = groups[1].cuda(1)", "cpu", "cuda:1"),
    ("False", "groups[1] = groups[1].cuda(0)", "cuda:1", "cuda:0"),
    ("True, on_gpu=2", "groups[1] = groups[1].cpu()", "cuda", "cpu"),
], ids=["data", "entry", "gpu", "ratio"])
def test_a_partition_that_is_not_where_its_optimizer_wants_it(run_python, arguments, line, expected, found):
    [finding] = misplaced(run_python(PARTITIONED.format(arguments=arguments, line=line), sim=2))
    expectation = finding["expectation"]
    assert expectation["rule"] == "partition-where-configured"
    assert (expectation["expected"], expectation["found"]) == (expected, found)
    assert expectation["names"] == ["engine.optimizer.fp32_partitioned_groups_flat[1]"]
    assert finding["where"]["source"].strip() == finding["root_cause"]["source"].strip() == line


@pytest.mark.parametrize("arguments, line", [
    ("True", "pass"),
    ("False", "pass"),
    ("True, on_gpu=2", "pass"),
    ("True", "groups[1].data = torch.empty(0, device='cuda:1')"),  # it is on disk
    ("False", "groups[1].data = groups[1].cpu(); engine.optimizer.offloaded_states.add('hp_params')"),
], ids=["offloaded", "gpu", "ratio", "disk", "states"])
def test_partitions_that_are_where_their_optimizer_wants_them(run_python, arguments, line):
    run = run_python(PARTITIONED.format(arguments=arguments, line=line), sim=2)
    assert run.status == 0, run.stderr
    assert misplaced(run) == []


def test_the_expectation_of_partitions_is_switched_off_by_its_name(run_python):
    program = PARTITIONED.format(arguments="True", line="groups[1].data = groups[1].data.cuda(1)")
    off = "expect_not=partition-where-configured"
    assert misplaced(run_python(program, sim=2, preload=True, options=[off])) == []


@pytest.mark.parametrize("program", [
    # parts of a model on two devices, each layer whole
    """
    import torch
    a, b = torch.nn.Linear(4, 4).cuda(0), torch.nn.Linear(4, 4).cuda(1)
    for _ in range(3):
        b(a(torch.ones(2, 4, device="cuda:0")).cuda(1)).sum().backward()
    """,
    # parameters in a list, one for each device
    """
    import torch
    weights = torch.nn.ParameterList([torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1"), torch.ones(2)])
    for _ in range(3):
        sum(weight.sum().cpu() for weight in weights).backward()
    """,
    # weights that live on the host, and visit the device in the forward
    """
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    for _ in range(3):
        hidden = torch.ones(2, 4, device="cuda")
        for layer in model:
            layer.cuda()
            hidden = layer(hidden)
        hidden.sum().backward()
        model.cpu()
    """,
    # FSDP's way: the parameters are views of one flat tensor
    """
    import torch
    layer = torch.nn.Linear(4, 4).cuda()
    flat = torch.cat([layer.weight.detach().flatten(), layer.bias.detach()])
    layer.weight.data, layer.bias.data = flat[:16].view(4, 4), flat[16:]
    for _ in range(3):
        layer(torch.ones(2, 4, device="cuda")).sum().backward()
    """,
], ids=["pipeline", "list", "offloaded", "flat"])
def test_placements_that_are_meant_are_no_finding(run_python, program):
    run = run_python(program, sim=2)
    assert run.status == 0, run.stderr
    assert misplaced(run) == []
