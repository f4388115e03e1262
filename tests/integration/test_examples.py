"""The files in docs/examples, and the commands of README.md and docs/installing.md, name what an installation has."""

import os
import re
import subprocess

import pytest
import yaml

from harness import ROOT, Runner

EXAMPLES = ROOT / "docs/examples"
DOCUMENTS = ["README.md", "docs/installing.md", "docs/uninstalling.md"]
WHEEL = "devsan-<version>-py3-none-manylinux_2_28_x86_64.whl"


def block_after(document, words):
    """The lines of the first code block in which `words` stand."""
    blocks = re.findall(r"^```\n(.*?)^```", document.read_text(), re.M | re.S)
    return next(block for block in blocks if words in block).splitlines()


def test_readme_shows_a_real_report(devsan, python, tmp_path):
    result = Runner(devsan, python, tmp_path)(EXAMPLES / "train.py", sim=1)
    done = subprocess.run([devsan, "view", result.out], capture_output=True, text=True, timeout=60)
    report = done.stdout.replace(str(EXAMPLES), "/home/ann").splitlines()
    shown = [line for line in block_after(ROOT / "README.md", "error[device-mismatch]")[1:] if line]
    assert len(shown) >= 15
    places = [report.index(line) for line in shown]
    assert places == sorted(places)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_of_an_installation_that_are_named_exist(devsan, name):
    prefix = devsan.parent.parent
    named = set(re.findall(r"PREFIX/([\w./-]+)", (ROOT / name).read_text())) - {"lib/devsan/hooks/"}
    for path in named:
        assert (prefix / path).exists(), path


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_of_devsan_that_are_shown_have_such_options(devsan, name):
    text = (ROOT / name).read_text()
    called = re.findall(r"\bdevsan (run|view|diff|collect|build|lib)((?: (?!--[ `\n])[^\s`;#&|)]+)*)", text)
    assert name == "docs/uninstalling.md" or called
    for command, words in called:
        known = subprocess.run([devsan, command, "--help"], capture_output=True, text=True, timeout=60).stdout
        for option in re.findall(r"--[a-z-]+", words):
            assert re.search(rf"(^|[ ,]){option}\b", known), (command, option)


def test_wheel_has_one_name_everywhere():
    for name in ("README.md", "docs/installing.md"):
        assert set(re.findall(r"devsan-\S*\.whl", (ROOT / name).read_text())) == {WHEEL}, name
    copied = set(re.findall(r"^COPY (devsan-\S*)", (EXAMPLES / "Dockerfile").read_text(), re.M))
    assert copied == {WHEEL.replace("<version>", "*")}


def test_dockerfile_has_the_stages_that_are_named_and_copies_what_an_installation_has(devsan):
    text = (EXAMPLES / "Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", text, re.M))
    for document in (text, (ROOT / "docs/installing.md").read_text()):
        assert set(re.findall(r"--target (\w+)", document)) <= stages
    copied = re.findall(r"^COPY --from=(\w+) /opt/devsan/(\S+) /opt/devsan/(\S+)$", text, re.M)
    assert len(copied) == 2
    for stage, source, target in copied:
        assert stage in stages and source == target and (devsan.parent.parent / source).is_dir()
    assert re.search(r'^ENTRYPOINT \["devsan", "run", "--out", "/traces", "--"\]$', text, re.M)


def test_manifest_mounts_every_volume_and_preloads_a_library_that_is_there(devsan):
    spec = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (copying,) = spec["initContainers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in spec["volumes"]}
    library = variables["LD_PRELOAD"].removeprefix(mounts["devsan"] + "/")
    assert (devsan.parent.parent / library).is_file()
    assert variables["DEVSAN_OPTIONS"] == "out=" + mounts["traces"]
    text = (ROOT / "docs/installing.md").read_text()
    assert all(f"{name}={value}" in text for name, value in variables.items())
    source = [word for word in copying["command"] if word.startswith("/opt/devsan/")]
    assert {word.rpartition("/")[2] for word in source} == {"lib", "share"}
    assert copying["command"][-1].rstrip("/") == copying["volumeMounts"][0]["mountPath"]


def test_preload_as_in_the_manifest_makes_a_report(devsan, python, tmp_path):
    result = Runner(devsan, python, tmp_path)(EXAMPLES / "train.py", sim=1, preload=True)
    assert len(result.raised()) == 1


def test_batch_script_runs_and_keeps_the_status_of_the_training(devsan, python, tmp_path):
    """With a stand-in for srun that starts two tasks."""
    (tmp_path / "bin").mkdir()
    srun = tmp_path / "bin/srun"
    srun.write_text('#!/bin/bash\nshift\n"$@" & "$@" & wait -n; status=$?; wait; exit $status\n')
    srun.chmod(0o755)
    venv = tmp_path / "venv/bin"
    venv.mkdir(parents=True)
    (venv / "devsan").symlink_to(devsan)
    (venv / "python").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (venv / "python").chmod(0o755)
    (tmp_path / "train.py").write_text((EXAMPLES / "train.py").read_text())
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "VENV": str(tmp_path / "venv"),
                   "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0",
                   "DEVSAN_OPTIONS": "sim=1", "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))}
    done = subprocess.run(["bash", EXAMPLES / "train.sbatch"], capture_output=True, text=True, env=environment, cwd=tmp_path,
                          timeout=300)
    assert done.returncode == 1, done.stderr
    assert "error[device-mismatch]" in done.stdout and "2 times" in done.stdout
    assert len(list((tmp_path / "devsan-out/7").glob("*.devsan"))) >= 2
