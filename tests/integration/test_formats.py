"""The report as SARIF, Markdown and a Perfetto trace: what they hold, and that no program's text breaks them."""

import json
import os
import subprocess

import jsonschema
import markdown_it
import pytest

from harness import ROOT, Runner

SARIF = json.loads((ROOT / "tests/schemas/sarif-2.1.0-rtm.5.json").read_text())

TRAINING = """
    import torch

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = torch.nn.Linear(16, 4)
            self.scale = torch.ones(4)

        def forward(self, x):
            return self.proj(x) * self.scale

    model = Head().to("cuda")
    for step in range(3):
        model.proj(torch.randn(8, 16, device="cuda")).sum().backward()
    "größer"; model(torch.randn(8, 16, device="cuda"))
"""

# Texts that would be markup, a mention or the end of a fence. Python normalizes no names in strings.
NAME = "`x` </code><script>alert(1)</script> ![i](x) @octocat #1 ```` <img src=x onerror=alert(1)>"
HOSTILE = f'''
import torch
here = {{"a|b": torch.ones(2, device="cuda")}}
there = {{"{NAME}": torch.ones(2)}}
here["a|b"] + there["{NAME}"]
'''


def view(devsan, *words, cwd=None):
    done = subprocess.run([devsan, "view", *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def training(devsan, python, tmp_path_factory):
    """A run with one finding whose cause has a patch, and its program."""
    scratch = tmp_path_factory.mktemp("training")
    runner = Runner(devsan, python, scratch, start=True)
    program = runner.program(TRAINING)
    return runner(program, sim=1, options=["--quiet"]).out, program


@pytest.fixture(scope="module")
def hostile(devsan, python, tmp_path_factory):
    """A run whose texts try to break out of a format."""
    scratch = tmp_path_factory.mktemp("hostile")
    program = scratch / "pro`gram|<b>.py"
    program.write_text(HOSTILE)
    return Runner(devsan, python, scratch, start=True)(program, sim=1, options=["--quiet"]).out


def sarif_of(devsan, out, cwd=None):
    file = out / "report.sarif"
    view(devsan, out, "--sarif", file, cwd=cwd)
    log = json.loads(file.read_text())
    jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(log)
    return log["runs"][0]


# ---- SARIF

def test_sarif_names_the_place_the_cause_and_the_history(devsan, training):
    out, program = training
    run = sarif_of(devsan, out)
    [result] = [one for one in run["results"] if one["ruleId"] == "device-mismatch"]
    assert result["level"] == "error" and run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": program.name, "uriBaseId": "PROGRAM"}
    assert run["originalUriBaseIds"]["PROGRAM"]["uri"] == f"file://{program.parent}/"
    assert place["region"]["snippet"]["text"] == "self.proj(x) * self.scale"
    assert "return self.proj(x) * self.scale" in place["contextRegion"]["snippet"]["text"]
    causes = [one for one in result["relatedLocations"] if one["message"]["text"].startswith("Likely cause")]
    assert [one["physicalLocation"]["region"]["startLine"] for one in causes] == [8]
    [flow] = result["codeFlows"]
    steps = flow["threadFlows"][0]["locations"]
    assert "created on cpu" in steps[0]["location"]["message"]["text"]
    assert steps[-1]["location"]["physicalLocation"] == place


def test_columns_of_sarif_count_characters(devsan, training):
    out, _ = training
    [result] = [one for one in sarif_of(devsan, out)["results"] if one["ruleId"] == "device-mismatch"]
    outermost = result["stacks"][0]["frames"][-1]["location"]["physicalLocation"]
    line = outermost["contextRegion"]["snippet"]["text"]
    region = outermost["region"]
    assert line[region["startColumn"] - 1:region["endColumn"] - 1].startswith("model(")


def applied(text, replacements):
    """The text after the replacements, the last one first, as SARIF counts lines and columns."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for one in reversed(replacements):
        region = one["deletedRegion"]
        begin = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:begin] + one["insertedContent"]["text"] + text[end:]
    return text


def test_fixes_of_sarif_make_what_the_patch_makes(devsan, training, tmp_path):
    out, program = training
    [result] = [one for one in sarif_of(devsan, out)["results"] if one["ruleId"] == "device-mismatch"]
    [change] = result["fixes"][0]["artifactChanges"]
    report = json.loads(view(devsan, out, "--json"))
    [finding] = [one for one in report["findings"] if one["kind"] == "device-mismatch"]
    patched = tmp_path / "patched.py"
    patched.write_text(program.read_text())
    subprocess.run(["patch", "-s", patched], input=finding["fix"]["patches"][0]["diff"], text=True, check=True)
    assert applied(program.read_text(), change["replacements"]) == patched.read_text() != program.read_text()


def test_places_of_sarif_are_relative_to_the_directory_of_a_checkout(devsan, training):
    out, program = training
    run = sarif_of(devsan, out, cwd=program.parent.parent)
    [result] = [one for one in run["results"] if one["ruleId"] == "device-mismatch"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == f"{program.parent.name}/{program.name}"


def test_suppressed_findings_are_suppressed_results(devsan, training, tmp_path):
    out, _ = training
    entries = tmp_path / "known.txt"
    entries.write_text("device-mismatch  # known since spring\n")
    file = tmp_path / "report.sarif"
    view(devsan, out, "--sarif", file, "--suppressions", entries)
    results = json.loads(file.read_text())["runs"][0]["results"]
    [result] = [one for one in results if one["ruleId"] == "device-mismatch"]
    [suppression] = result["suppressions"]
    assert suppression["kind"] == "external" and "known since spring" in suppression["justification"]
    assert all(one["suppressions"] == [] for one in results if one is not result)


def test_damage_is_a_notification_of_sarif(devsan, training, tmp_path):
    out, _ = training
    (tmp_path / "rank9.1.devsan").write_text("no trace")
    file = tmp_path / "report.sarif"
    subprocess.run([devsan, "view", *out.glob("*.devsan"), tmp_path / "rank9.1.devsan", "--sarif", file], check=True)
    log = json.loads(file.read_text())
    jsonschema.Draft4Validator(SARIF).validate(log)
    told = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert any("rank9.1.devsan" in one["message"]["text"] for one in told)


def test_hostile_names_leave_sarif_valid(devsan, hostile):
    [uri] = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
             for result in sarif_of(devsan, hostile)["results"]}
    assert uri == "pro%60gram%7C%3Cb%3E.py"


# ---- Markdown

def tokens_of(text):
    found = []

    def gather(tokens):
        for token in tokens:
            found.append(token)
            gather(token.children or [])
    gather(markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").parse(text))
    return found


def test_markdown_shows_place_operands_cause_and_patch(devsan, training):
    out, program = training
    text = view(devsan, out, "--markdown")
    tokens = tokens_of(text)
    fences = [token.content for token in tokens if token.type == "fence" and token.info == "diff"]
    assert len(fences) == 1 and "+        self.register_buffer('scale'" in fences[0]
    codes = [token.content for token in tokens if token.type == "code_inline"]
    assert f"{program}:11" in codes and f"{program}:8" in codes and "self.scale" in codes
    assert sum(token.type == "table_open" for token in tokens) == 1
    assert text.count("<details>") == text.count("</details>") >= 2


def test_hostile_names_stay_text_in_markdown(devsan, hostile):
    text = view(devsan, hostile, "--markdown")
    assert "octocat" in text and "onerror" in text
    tokens = tokens_of(text)
    assert not [token for token in tokens if token.type in ("link_open", "image")]
    tags = [token.content.strip() for token in tokens if token.type in ("html_block", "html_inline")]
    plain = ("<details><summary>", "</details>", "</summary>", "<code>", "</code>")
    for tag in tags:
        assert tag.startswith(plain) and "<script" not in tag and "<img" not in tag, tag
    for token in tokens:
        if token.type == "text":
            assert "@octocat" not in token.content and "#1" not in token.content, token.content
    assert any(NAME in token.content for token in tokens if token.type == "fence")


def test_markdown_hides_secrets_and_home_directories(devsan, python, tmp_path):
    home = tmp_path / "home/ann"
    home.mkdir(parents=True)
    program = home / "train.py"
    program.write_text("import torch\ntorch.ones(2, device='cuda') + torch.ones(2), dict(api_key='hunter2')\n")
    out = Runner(devsan, python, tmp_path)(program, sim=1, options=["--quiet"]).out
    done = subprocess.run([devsan, "view", out, "--markdown"], capture_output=True, text=True, check=True,
                          env={**os.environ, "HOME": str(home)})
    assert "~/train.py:2" in done.stdout and str(home) not in done.stdout
    assert "api_key='***'" in done.stdout and "hunter2" not in done.stdout


def test_several_formats_are_written_at_once(devsan, training, tmp_path):
    out, _ = training
    files = {name: tmp_path / name for name in ("json", "sarif", "markdown", "perfetto")}
    words = [word for name, file in files.items() for word in (f"--{name}", file)]
    assert view(devsan, out, *words) == ""
    assert all(file.stat().st_size > 100 for file in files.values())
    done = subprocess.run([devsan, "view", out, "--json", "--markdown"], capture_output=True, text=True)
    assert done.returncode == 2 and "excludes" in done.stderr


# ---- Perfetto

def perfetto_of(devsan, out, tmp_path):
    file = tmp_path / "trace.json"
    view(devsan, out, "--perfetto", file)
    return json.loads(file.read_text())["traceEvents"]


def check_structure(events):
    """Each event has what the format's documentation asks of its phase, and the slices of a track lie side by side."""
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    slices = {}
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["name"], event
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
            continue
        assert event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["dur"] >= 0 and (event["pid"], event["tid"]) in named
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
        elif event["ph"] == "i":
            assert event["s"] == "t"
        elif event["ph"] in "sf":
            assert isinstance(event["id"], int) and (event["pid"], event["tid"]) in named
        else:
            assert event["ph"] == "C" and all(isinstance(value, int) for value in event["args"].values())
    for track in slices.values():
        track.sort(key=lambda event: event["ts"])
        for before, after in zip(track, track[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.01, (before, after)


def test_perfetto_has_tracks_steps_memory_and_findings(devsan, training, tmp_path):
    out, program = training
    events = perfetto_of(devsan, out, tmp_path)
    check_structure(events)
    [process] = [e for e in events if e["name"] == "process_name"]
    assert process["args"]["name"].startswith("process · pid ")
    [found] = [e for e in events if e.get("cat") == "finding" and e["name"] == "device-mismatch"]
    assert found["args"]["at"] == f"{program}:11" and found["args"]["cause"] == f"{program}:8"
    counters = {e["name"] for e in events if e["ph"] == "C"}
    assert {"host memory", "cuda:0 memory"} <= counters
    assert any(e["ph"] == "X" and e["name"].startswith("step") for e in events)
    operators = [e for e in events if e["ph"] == "X" and e["name"] == "aten::linear"]
    assert operators and all(str(program) in e["args"]["at"] for e in operators if e["args"]["at"])


COLLECTIVES = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(3):
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
"""


def test_perfetto_joins_the_ranks_of_a_collective_by_arrows(devsan, python, tmp_path):
    program = tmp_path / "ranks.py"
    program.write_text(COLLECTIVES)
    command = [devsan, "run", "--quiet", "--out", tmp_path / "out", "--", python, "-m",
               "torch.distributed.run", "--standalone", "--nproc-per-node=2", program]
    env = Runner(devsan, python, tmp_path).environment({"OMP_NUM_THREADS": "1"})
    subprocess.run(list(map(str, command)), env=env, check=True, capture_output=True, timeout=180)
    events = perfetto_of(devsan, tmp_path / "out", tmp_path)
    check_structure(events)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    entered = [(names[e["pid"]].split(" · ")[0], e["args"]["sequence"]) for e in events
               if e["ph"] == "X" and e["name"] == "all_reduce"]
    numbers = {number for _, number in entered}
    assert len(numbers) == 3 and sorted(entered) == sorted((rank, n) for rank in ("rank 0", "rank 1") for n in numbers)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts and starts.keys() == ends.keys()
    for number, start in starts.items():
        assert start["pid"] != ends[number]["pid"] and start["ts"] <= ends[number]["ts"]
