"""Rules about where tensors are: what breaks them, what keeps them, and how they are written and learned."""

import json
import subprocess
import tomllib

import jsonschema
import pytest

from harness import ROOT, view

SCHEMA = json.loads((ROOT / "rules/rules.schema.json").read_text())

# Four experts behind a gate; {devices} says where each of them goes.
EXPERTS = """
    import torch
    from torch import nn

    class Expert(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

        def forward(self, x):
            return self.down(torch.relu(self.up(x)))

    class Mixture(nn.Module):
        def __init__(self, devices):
            super().__init__()
            self.gate = nn.Linear(8, 4).to("cuda:0")
            self.experts = nn.ModuleList(Expert() for _ in devices)
            for expert, device in zip(self.experts, devices):
                expert.to(device)

        def forward(self, x):
            there = [expert.up.weight.device for expert in self.experts]
            return sum(e(x.to(d)).to(x.device) for e, d in zip(self.experts, there)) * self.gate(x).mean()

    def main():
        model = Mixture({devices})
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(4):
            x = torch.randn(4, 8, device="cuda:0")
            optimizer.zero_grad()
            loss = model(x).square().mean()
            {each}
            loss.backward()
            optimizer.step()
            {behind}

    main()
"""
GOOD = ["cuda:1"] * 4
ONE_ASTRAY = ["cuda:1", "cuda:1", "cuda:0", "cuda:1"]


def experts(devices=GOOD, each="pass", behind="pass"):
    return EXPERTS.format(devices=devices, each=each, behind=behind)


@pytest.fixture
def judged(run_python, devsan, tmp_path):
    """Runs a program on two devices, and holds what it did to rules: the findings."""
    def judge(rules, program):
        run = program if not isinstance(program, str) else run_python(program, sim=2)
        path = tmp_path / "judged.toml"
        path.write_text(rules)
        return view(devsan, run.out, "--rules", path)["findings"]

    return judge


@pytest.fixture
def run_with(run_python, tmp_path):
    """Runs a program on two devices, held to a file of rules."""
    def run(rules, program, **kwargs):
        path = tmp_path / "rules.toml"
        path.write_text(rules)
        return run_python(program, sim=2, options=["--rules", path, *kwargs.pop("options", ())], start=True, **kwargs)

    return run


def misplaced(findings):
    return [f for f in getattr(findings, "findings", findings) if f["kind"] == "wrong-placement"]


def notices(run):
    return [notice["text"] for notice in run.report["run"]["notices"]]


def test_an_expert_on_the_wrong_device_breaks_a_rule(run_with):
    run = run_with('expect = "experts.{0-3} on cuda:1"', experts(ONE_ASTRAY))
    [finding] = misplaced(run)
    assert run.status == 0
    assert finding["severity"] == "warning"
    assert (finding["expectation"]["expected"], finding["expectation"]["found"]) == ("cuda:1", "cuda:0")
    assert finding["expectation"]["rule"] == "experts.{0-3} on cuda:1"
    assert finding["expectation"]["line"] == 1
    assert finding["expectation"]["tensors"] == 4
    assert finding["expectation"]["names"][0] == "model.experts.2.up.weight"
    assert finding["where"]["source"].strip() == "expert.to(device)"
    assert finding["root_cause"]["line"] == finding["where"]["line"]
    assert [step["how"] for step in finding["operands"][0]["lineage"]] == ["moved", "created"]


def test_a_run_that_keeps_its_rules_has_no_finding(run_with):
    rules = """
        expect = ["experts.{0-3} on cuda:1", "gate on cuda:0", "optimizer state beside its parameter",
                  "parameters of experts.0 on one device", "no host sync in phase forward"]
    """
    run = run_with(rules, experts())
    assert run.loud() == []
    assert run.stderr == ""
    assert notices(run) == []


def test_a_run_that_is_over_can_be_judged(run_python, judged):
    run = run_python(experts(ONE_ASTRAY), sim=2)
    assert misplaced(run) == []
    [finding] = misplaced(judged('expect = "experts on cuda:1"', run))
    assert finding["expectation"]["names"][0] == "model.experts.2.up.weight"


def test_conditions_on_steps_choose_what_is_judged(run_python, judged):
    away = 'model.experts[0].to("cuda:0")\n            if step != 1: model.experts[0].to("cuda:1")'
    rule = '[[rule]]\nexpect = "experts.0 on cuda:1"\nsteps = "{}"'
    # Without state, which would stay behind.
    program = experts(behind=away).replace("Adam(model.parameters())", "SGD(model.parameters(), lr=0.1)")
    run = run_python(program, sim=2)
    # It is on cuda:0 in the forward and backward of step 2 alone.
    assert misplaced(judged(rule.format("0-1"), run)) == []
    [finding] = misplaced(judged(rule.format("2"), run))
    assert finding["step"] == 2


def test_rules_of_other_ranks_are_not_judged(run_with):
    rules = '[[rule]]\nexpect = "experts on cuda:1"\nranks = {}'
    env = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    assert misplaced(run_with(rules.format(0), experts(ONE_ASTRAY), env=env)) == []
    assert len(misplaced(run_with(rules.format('"1-3"'), experts(ONE_ASTRAY), env=env))) == 1
    [finding] = misplaced(run_with('expect = "gate on cuda:local_rank"', experts(), env=env))
    assert (finding["expectation"]["expected"], finding["expectation"]["found"]) == ("cuda:1", "cuda:0")


def test_state_that_is_not_beside_its_parameter_breaks_a_rule(judged):
    # A step with state elsewhere would raise: it is brought there and back.
    move = """for state in optimizer.state.values():
                for key in ("exp_avg", "exp_avg_sq"): state[key] = state[key].to({!r})"""
    program = experts(behind=move.format("cpu"), each=move.format("cpu")).replace(
        "optimizer.step()", "\n            ".join([move.format("cuda:0"), "optimizer.step()"]))
    program = program.replace(str(GOOD), str(["cuda:0"] * 4))
    run = judged('expect = "optimizer state beside its parameter"', program)
    [finding] = misplaced(run)
    assert finding["expectation"]["names"][0].startswith("exp_avg of model.")
    assert (finding["expectation"]["expected"], finding["expectation"]["found"]) == ("cuda:0", "cpu")
    assert finding["expectation"]["tensors"] > 1


PINNED = """
    import torch

    class Engine:
        def __init__(self):
            self.model = torch.nn.Linear(8, 8).cuda()
            self.flat = [torch.zeros(64), torch.zeros(64).pin_memory(), torch.zeros(64, device="cuda")]

    engine = Engine()
    engine.model(torch.ones(2, 8, device="cuda")).sum().backward()
"""


def test_pinned_memory_is_told_from_other_memory_of_the_host(judged):
    run = judged('expect = "*.flat[*] on cpu pinned"', PINNED)
    found = {f["expectation"]["names"][0]: f["expectation"]["found"] for f in misplaced(run)}
    assert found == {"engine.flat[0]": "cpu", "engine.flat[2]": "cuda:0"}


def test_a_wait_that_a_rule_forbids_is_a_warning(run_python, judged):
    waits = "self.scale = x.sum().item()\n            return sum("
    run = run_python(experts().replace("return sum(", waits), sim=2)
    for phase, severity in (("forward", "warning"), ("backward", "note")):
        findings = judged(f'expect = "no host sync in phase {phase}"', run)
        [finding] = [f for f in findings if f["kind"] == "implicit-sync"]
        assert (finding["phase"], finding["severity"]) == ("forward", severity)
        assert ("expectation" in finding) == (severity == "warning")


def test_a_copy_that_is_larger_than_a_rule_allows_is_a_warning(run_python, judged):
    run = run_python(experts(each="kept = torch.zeros(1 << 18, device='cuda').cpu()"), sim=2)
    for size, warnings in (("512 KiB", 1), ("2 MiB", 0)):
        findings = judged(f'expect = "no transfer over {size}"', run)
        loud = [f for f in findings if f["kind"] == "implicit-transfer" and f["severity"] == "warning"]
        assert len(loud) == warnings
        assert all(f["expectation"]["found"] == "1.0 MiB are copied at a time" for f in loud)


SCALED = """
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.scale

    model = torch.nn.ModuleDict({"one": Scaled(), "other": Scaled()}).to("cuda:1")
    x = torch.ones(2, 4, device="cuda:1")
    (model["one"](x) + model["other"](x)).sum().backward()
"""


def test_what_a_class_computes_is_judged_where_all_its_modules_are_meant(run_python, judged):
    run = run_python(SCALED, sim=2)
    [finding] = misplaced(judged('expect = "activations of model on cuda:0"', run))
    assert finding["operands"][0]["name"] == "what Scaled.forward computes"
    assert (finding["expectation"]["expected"], finding["expectation"]["found"]) == ("cuda:0", "cuda:1")
    assert finding["where"]["function"] == "Scaled.forward"
    assert misplaced(judged('expect = "activations of model.one on cuda:0"', run)) == []


def test_what_a_class_without_tensors_of_its_own_computes_is_judged(run_python, judged):
    findings = misplaced(judged('expect = "activations of experts on cuda:0"', run_python(experts(), sim=2)))
    assert findings
    assert {f["operands"][0]["name"] for f in findings} == {"what Expert.forward computes"}


def test_a_program_without_a_backward_is_judged_at_its_end(judged):
    program = """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4).cuda())
        with torch.no_grad():
            model[1](torch.ones(1, 4, device="cuda"))
    """
    [finding] = misplaced(judged('expect = "model on cuda"', program))
    assert finding["expectation"]["names"] == ["model.0.weight", "model.0.bias"]


def test_a_program_that_fails_in_its_first_step_is_judged(judged):
    program = """
        import torch

        def train():
            model = torch.nn.ModuleDict({"body": torch.nn.Linear(4, 4).cuda(), "head": torch.nn.Linear(4, 4)})
            return model["head"](model["body"](torch.ones(1, 4, device="cuda")))

        train()
    """
    [finding] = misplaced(judged('expect = "model on cuda"', program))
    assert finding["expectation"]["names"] == ["model.head.weight", "model.head.bias"]


def test_what_happens_behind_the_training_breaks_no_rule(judged):
    program = experts(["cuda:0"] * 4).replace("    main()\n", "") + """
    def keep_it():
        global kept
        kept = torch.nn.Linear(2, 2)

    main()
    keep_it()
"""
    assert misplaced(judged('expect = "* on cuda:0"', program)) == []


def test_a_rule_about_a_name_that_nothing_has_is_told_of(run_with):
    run = run_with('expect = ["experst on cuda:1", "experts on cuda:1"]', experts())
    [notice] = notices(run)
    assert "experst on cuda:1" in notice and "rules.toml:1" in notice


def test_fail_on_counts_what_breaks_a_rule(run_with):
    run = run_with('expect = "experts on cuda:1"', experts(ONE_ASTRAY), options=["--fail-on", "wrong-placement"])
    assert run.status == 66
    assert "wrong-placement" in run.stderr


def test_a_wrong_file_is_told_of_before_anything_runs(run_with):
    run = run_with('expect = [\n  "experts on cdua:1",\n]', "print('ran')")
    assert (run.status, run.stdout) == (2, "")
    assert run.stderr.endswith("rules.toml:2:15: 'cdua:1' is no device such as cpu or cuda:1; did you mean cuda?\n")


def test_nothing_but_traces_is_left_in_the_directory_of_a_run(run_with):
    run = run_with('expect = "experts on cuda:1"', experts())
    assert {path.suffix for path in run.out.iterdir()} == {".devsan"}
    without_torch = run_with('expect = "experts on cuda:1"', "print('no torch')")
    assert not without_torch.out.exists()


def test_a_bare_preload_takes_compiled_rules(run_python, devsan, tmp_path):
    rules, compiled = tmp_path / "rules.toml", tmp_path / "rules.compiled"
    rules.write_text('expect = "experts on cuda:1"')
    compiled.write_bytes(subprocess.run([devsan, "rules", "compile", rules], capture_output=True, check=True).stdout)
    run = run_python(experts(ONE_ASTRAY), sim=2, preload=True, options=[f'rules="{compiled}"'])
    assert misplaced(run)[0]["expectation"]["file"] == str(rules)
    wrong = run_python(experts(), sim=2, preload=True, options=[f'rules="{rules}"'])
    assert wrong.status == 0 and "write it with devsan rules compile" in wrong.stderr


def test_children_are_held_to_the_rules(judged):
    program = experts(ONE_ASTRAY).replace("    main()\n", "") + """
    import os
    if os.fork() == 0:
        main()
        os._exit(0)
    os.wait()
"""
    [finding] = misplaced(judged('expect = "experts on cuda:1"', program))
    assert finding["expectation"]["names"][0] == "model.experts.2.up.weight"


def test_without_looks_nothing_is_judged_and_nothing_recorded(run_python, devsan, tmp_path):
    run = run_python(experts(ONE_ASTRAY), sim=2, preload=True, options=["placements=0"])
    assert run.status == 0
    done = subprocess.run([devsan, "learn", run.out], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "do not say where tensors were" in done.stderr


def learned(devsan, run, path):
    done = subprocess.run([devsan, "learn", run.out], capture_output=True, text=True, check=True)
    path.write_text(done.stdout)
    jsonschema.validate(tomllib.loads(done.stdout), SCHEMA)
    return done.stdout


def test_rules_of_a_good_run_are_short_and_catch_a_misplacement_in_the_next(run_python, devsan, tmp_path):
    rules = tmp_path / "learned.toml"
    text = learned(devsan, run_python(experts(), sim=2), rules)
    assert '"parameters and buffers of model.experts on cuda:1"' in text
    assert '"parameters and buffers of model.gate on cuda:0"' in text
    assert '"optimizer state beside its parameter"' in text
    assert len(text.splitlines()) < 12
    held = ["--rules", str(rules)]
    assert run_python(experts(), sim=2, options=held, start=True).loud() == []
    [finding] = misplaced(run_python(experts(ONE_ASTRAY), sim=2, options=held, start=True))
    assert finding["expectation"]["names"][0] == "model.experts.2.up.weight"


# A copy of the model, which a variable of its own keeps on the host; and a batch that comes and goes.
SHADOWED = """
    import copy
    import torch
    from torch import nn

    class Shadow:
        def __init__(self, model):
            self.model = copy.deepcopy(model).cpu()

    class Scaler:
        def __init__(self):
            self.scale = torch.ones(1)

    def main():
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).to("cuda:0")
        shadow, scaler = Shadow(model), Scaler()
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(4):
            batch = {"x": torch.randn(4, 8, device="cuda:0")}
            optimizer.zero_grad()
            model(batch["x"]).square().mean().backward()
            optimizer.step()

    main()
"""


def test_the_run_that_rules_are_learned_from_keeps_them(run_python, devsan, tmp_path):
    run = run_python(SHADOWED, sim=1)
    rules = tmp_path / "learned.toml"
    text = learned(devsan, run, rules)
    assert '"parameters and buffers of shadow on cpu"' in text and '"attributes' in text
    assert " of model on " not in text, "shadow.model is one of that name, too"
    findings = view(devsan, run.out, "--rules", rules)["findings"]
    assert [f for f in findings if f["kind"] == "wrong-placement"] == []


def test_neighbors_at_one_place_are_learned_as_a_range(run_python, devsan, tmp_path):
    run = run_python(experts(["cuda:0", "cuda:1", "cuda:1", "cuda:1"]), sim=2)
    text = learned(devsan, run, tmp_path / "learned.toml")
    assert '"parameters and buffers of model.experts.{1-3} on cuda:1"' in text


def test_two_files_are_compared(devsan, tmp_path):
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text('expect = ["a  on\\t cpu", "b on cuda:0"]')
    other.write_text('expect = ["a on cpu"]\n[[rule]]\nexpect = "b on cuda:1"\nranks = 0')
    done = subprocess.run([devsan, "rules", "diff", one, other], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "- b on cuda:0\n+ b on cuda:1 (ranks 0)\n")
    assert subprocess.run([devsan, "rules", "diff", one, one], check=False).returncode == 0


def test_the_example_of_the_documentation_is_right(devsan, tmp_path):
    text = (ROOT / "docs/rules.md").read_text().split("```toml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "rules.toml").write_text(text)
    jsonschema.validate(tomllib.loads(text), SCHEMA)
    done = subprocess.run([devsan, "rules", "check", tmp_path / "rules.toml"], capture_output=True, text=True,
                          check=True)
    assert done.stdout.endswith("6 rules, nothing is wrong\n")


@pytest.mark.parametrize("text", ['{"expect": 3}', "\x00\x01", "expect = " + "[" * 5000, "a = 1\n" * 100000])
def test_bad_input_is_a_few_lines_and_no_crash(devsan, tmp_path, text):
    (tmp_path / "rules.toml").write_text(text)
    done = subprocess.run([devsan, "rules", "check", tmp_path / "rules.toml"], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 2
    assert 1 <= len(done.stderr.splitlines()) <= 20


def test_the_report_of_a_broken_rule_fits_its_schema(run_with):
    schema = json.loads((ROOT / "report/render/report.schema.json").read_text())
    run = run_with('expect = "experts on cuda:1"', experts(ONE_ASTRAY))
    jsonschema.validate(view(run.devsan, run.out), schema)
