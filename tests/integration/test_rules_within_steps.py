"""Rules about places, held against where tensors were while a step ran: what is moved and brought back before the step's
end, what is wrong where a program dies, and what must not be taken for it."""

import subprocess

import pytest

from harness import view

# Two halves of a model; {lines} run in each step, {first} before the first one, {behind} after the last one.
PROGRAM = """
    import os, signal
    import torch

    def main():
        model = torch.nn.ModuleDict({{"body": torch.nn.Linear(4, 4), "head": torch.nn.Linear(4, 4)}})
        {first}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range({steps}):
            x = torch.ones(2, 4, device="cuda:0")
            hidden = model["body"](x)
            {forward}
            loss = model["head"](hidden).square().mean()
            loss.backward()
            {between}
            optimizer.step()
            optimizer.zero_grad()
            {each}
        {behind}

    main()
"""
RULE = 'expect = "head on cuda:0"'
THERE_AND_BACK = "; ".join(['if step == {step}: model["head"].to("cuda:1")', 'y = model["head"](hidden.to("cuda:1"))',
                            'model["head"].to("cuda:0")'])


def program(steps=3, first='model.to("cuda:0")', **lines):
    return PROGRAM.format(steps=steps, first=first,
                          **{place: lines.get(place, "pass") for place in ("forward", "between", "each", "behind")})


@pytest.fixture
def judged(run_python, devsan, tmp_path):
    """Runs a program on two devices, and holds what it did to a rule: what broke it."""
    def judge(text, rules=RULE, **kwargs):
        run = run_python(text, sim=2, **kwargs)
        path = tmp_path / "judged.toml"
        path.write_text(rules)
        report = view(devsan, run.out, "--rules", path)
        return run, [f for f in report["findings"] if f["kind"] == "wrong-placement"]

    return judge


def there_and_back(step):
    return THERE_AND_BACK.format(step=step)


@pytest.mark.parametrize("step", [0, 1])
def test_what_is_moved_and_brought_back_within_a_step_breaks_a_rule(judged, step):
    run, [finding] = judged(program(forward=there_and_back(step)))
    assert run.status == 0, run.stderr
    assert (finding["expectation"]["expected"], finding["expectation"]["found"]) == ("cuda:0", "cuda:1")
    assert finding["expectation"]["names"] == ["model.head.weight", "model.head.bias"]
    assert finding["step"] == step
    assert 'model["head"].to("cuda:1")' in finding["where"]["source"]
    assert [step["how"] for step in finding["operands"][0]["lineage"]][0] == "moved"


def test_what_is_moved_between_backward_and_optimizer_breaks_a_rule(judged):
    away = 'if step == 1: model["head"].to("cuda:1"); [setattr(p, "grad", None) for p in model["head"].parameters()]'
    run, [finding] = judged(program(between=away, each='model["head"].to("cuda:0")'))
    assert run.status == 0, run.stderr
    assert (finding["step"], finding["expectation"]["found"]) == (1, "cuda:1")


def test_what_was_moved_between_steps_is_seen_when_the_next_one_uses_it(judged):
    forward = 'y = model["head"](hidden.to(model["head"].weight.device)); model["head"].to("cuda:0")'
    run, [finding] = judged(program(forward=forward, each='if step == 0: model["head"].to("cuda:1")'))
    assert run.status == 0, run.stderr
    assert (finding["expectation"]["found"], 'model["head"].to("cuda:1")' in finding["where"]["source"]) == (
        "cuda:1", True)


@pytest.mark.parametrize("step", [0, 2])
@pytest.mark.parametrize("end", ['raise RuntimeError("no more")', "os.kill(os.getpid(), signal.SIGKILL)"])
def test_what_is_wrong_in_the_step_that_a_program_dies_in_breaks_a_rule(judged, step, end):
    away = f'if step == {step}: model["head"].to("cuda:1"); y = hidden * 2; {end}'
    run, [finding] = judged(program(forward=away), start=True)
    assert run.status != 0
    assert (finding["step"], finding["expectation"]["found"]) == (step, "cuda:1")
    assert finding["expectation"]["names"] == ["model.head.weight", "model.head.bias"]


@pytest.mark.parametrize("lines", [
    # behind the training
    {"behind": 'model.cpu(); torch.ones(2) + 1'},
    {"behind": 'model.cpu(); model["head"](torch.ones(2, 4)).sum()'},
    # between two steps, for a checkpoint
    {"each": 'model.cpu(); state = [p.detach().clone() for p in model.parameters()]; model.to("cuda:0")'},
    # a forward on the host, which finds out shapes, before the model is moved
    {"first": 'shape = model["head"](model["body"](torch.ones(2, 4))).shape; torch.ones(2) + 1; model.to("cuda:0")'},
    # a copy of weights is logged
    {"forward": 'norm = model["head"].weight.detach().to("cuda:1").norm(); y = norm + 1'},
], ids=["behind", "evaluation", "checkpoint", "shapes", "log"])
def test_places_outside_of_steps_and_copies_break_no_rule(judged, lines):
    run, findings = judged(program(**lines))
    assert run.status == 0, run.stderr
    assert findings == []


def test_a_program_that_failed_behind_its_training_broke_no_rule_by_that(judged):
    run, findings = judged(program(behind='model.cpu(); torch.ones(2) + 1; raise RuntimeError("no disk")'), start=True)
    assert "no disk" in run.stderr
    assert findings == []


def test_what_moves_together_line_by_line_is_judged_at_the_end_of_a_step(judged):
    forward = 'model["head"].weight.data = model["head"].weight.data.to("cuda:1"); y = hidden + 1; ' \
              'model["head"].weight.data = model["head"].weight.data.to("cuda:0")'
    run, findings = judged(program(forward=forward), rules='expect = "parameters of head on one device"')
    assert run.status == 0, run.stderr
    assert findings == []


def test_visits_are_seen_by_who_learns_rules(run_python, devsan):
    def learned(text):
        run = run_python(text, sim=2)
        return subprocess.run([devsan, "learn", run.out], capture_output=True, text=True, check=True).stdout

    assert "on cuda:0" in learned(program())
    visited = learned(program(forward=there_and_back(1)))
    assert "model.body on cuda:0" in visited and "model.head" not in visited


# Prints what a look within its second step could have changed.
WATCHED = """
    import sys
    import torch

    class Watched(torch.nn.Linear):
        def __getattr__(self, name):
            asked.append(name)
            return super().__getattr__(name)

    asked = []
    model = Watched(4, 4).cuda()
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    hidden = model(torch.ones(2, 4, device="cuda"))
    model.to("cuda:1")
    other = torch.ones(2) + 1
    model.to("cuda:0")
    print(sys.getrefcount(model.weight), sys.getrefcount(model.__dict__), len(asked), model.weight.device)
"""


def test_a_look_within_a_step_leaves_the_program_as_it_was(run_python):
    with_looks = run_python(WATCHED, sim=2, preload=True)
    without = run_python(WATCHED, sim=2, preload=True, options=["placements=0"])
    assert (with_looks.status, without.status) == (0, 0), with_looks.stderr + without.stderr
    assert with_looks.stdout == without.stdout
