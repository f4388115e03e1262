"""`devsan doctor`: what it says of whole configs and of machines, on a terminal and as JSON."""

import json
import os
import pathlib
import re
import subprocess
import sys

import jsonschema
import pytest

from harness import ROOT

SCHEMA = json.loads((ROOT / "doctor/doctor.schema.json").read_text())
CONFIGS = pathlib.Path(__file__).parent / "doctor_configs"
CHECKS = re.findall(r'^DEVSAN_CHECK\((\w+), (\w+), "(.*)"\)$', (ROOT / "doctor/checks.def").read_text(), re.M)

DRIVER = r"""
#include <string.h>
int cuInit(unsigned flags) { return flags == 0 ? INIT_STATUS : 1; }
int cuDriverGetVersion(int* version) { *version = 12040; return 0; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGetName(char* name, int size, int device) { strncpy(name, "Toy 100", size); return device < 0; }
int cuDeviceTotalMem_v2(unsigned long* bytes, int device) { *bytes = 24ul << 30; return device < 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { *value = attribute == 75 ? 7 : 0; return device < 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { static char two[2]; *device = &two[index]; return 0; }
int nvmlSystemGetDriverVersion(char* version, unsigned size) { strncpy(version, "550.54.14", size); return 0; }
"""


def run(devsan, *words, env=None):
    """The command in an environment without variables that it looks at."""
    watched = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "LD_LIBRARY_PATH", "NCCL_P2P_DISABLE")
    clean = {key: value for key, value in os.environ.items() if key not in watched}
    return subprocess.run([devsan, "doctor", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**clean, **(env or {})}, timeout=120)


def diagnosis(devsan, *words, env=None):
    done = run(devsan, *words, "--json", env=env)
    assert done.stderr == ""
    result = json.loads(done.stdout)
    jsonschema.validate(result, SCHEMA)
    assert done.returncode == (1 if result["summary"]["errors"] else 0)
    return result


def lines(result, check=None, level=None):
    return [line for line in result["checks"] if check in (None, line["check"]) and level in (None, line["level"])]


def option_for(config):
    return "--accelerate" if config.suffix == ".yaml" else "--deepspeed"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Makes a folder with a driver of two GPUs, whose cuInit returns a status."""
    def make(status=0):
        folder = tmp_path_factory.mktemp("driver")
        source = folder / "driver.c"
        source.write_text(DRIVER.replace("INIT_STATUS", str(status)))
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            subprocess.run(["gcc", "-shared", "-fPIC", "-w", source, "-o", folder / name], check=True)
        return {"LD_LIBRARY_PATH": str(folder)}
    return make


# ---- configs

@pytest.mark.parametrize("config", sorted((CONFIGS / "sound").iterdir()), ids=lambda path: path.name)
def test_a_sound_config_has_no_error(devsan, config):
    result = diagnosis(devsan, option_for(config), config, "--world-size", 8)
    assert not [line for line in lines(result, level="error") if line["group"] == "config"]
    assert [line for line in lines(result, level="ok") if line["group"] == "config"]


@pytest.mark.parametrize("config", sorted((CONFIGS / "broken").iterdir()), ids=lambda path: path.name)
def test_a_broken_config_has_an_error_of_the_check_in_its_name(devsan, config):
    result = diagnosis(devsan, option_for(config), config)
    found = lines(result, level="error")
    assert config.name.split(".")[0] in [line["check"] for line in found]
    for line in found:
        assert line["cure"] and line["source"], line


@pytest.mark.parametrize("text", ["", "{", "null", "[" * 100_000, '{"a":' * 100_000, "\0" * 1000, " " * (10 << 20)])
@pytest.mark.parametrize("name", ["c.json", "c.yaml"])
def test_bad_input_is_one_clear_line(devsan, tmp_path, name, text):
    config = tmp_path / name
    config.write_text(text)
    result = diagnosis(devsan, option_for(config), config)
    found = [line for line in lines(result, level="error") if line["group"] == "config"]
    assert len(found) == 1 and str(config) in found[0]["found"] and len(found[0]["found"]) < 300


def test_a_config_that_is_missing_is_named(devsan, tmp_path):
    found = lines(diagnosis(devsan, "--deepspeed", tmp_path / "missing.json"), "deepspeed-file", "error")
    assert found[0]["found"] == f"{tmp_path}/missing.json cannot be read: No such file or directory."


@pytest.mark.parametrize("option, name", [("--accelerate", "trainer_zero3.json"), ("--deepspeed", "several_gpus.yaml")])
def test_a_config_of_the_other_library_is_one_line(devsan, option, name):
    result = diagnosis(devsan, option, CONFIGS / "sound" / name)
    found = [line for line in lines(result) if line["group"] == "config"]
    other = {"--accelerate": "--deepspeed", "--deepspeed": "--accelerate"}[option]
    assert [line["cure"] for line in found] == [f"Give it with {other}."] and "by its keys" in found[0]["found"]


def test_secrets_of_a_config_are_not_shown(devsan, tmp_path):
    config = tmp_path / "ds.json"
    config.write_text('{"train_batch_size": 8, "wandb": {"enabled": true, "api_key": "s3cr3t"}, "hub_token": "s3cr3t"}')
    done = run(devsan, "--deepspeed", config)
    assert "wandb.api_key" in done.stdout and "s3cr3t" not in done.stdout + done.stderr


def test_the_config_that_accelerate_names_is_read(devsan, tmp_path):
    config = tmp_path / "ds.json"
    config.write_text('{"train_batch_size": 8, "fp16": {"enabled": true}, "bf16": {"enabled": true}}')
    accelerate = tmp_path / "accelerate.yaml"
    accelerate.write_text(f"distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  deepspeed_config_file: {config}\n")
    assert lines(diagnosis(devsan, "--accelerate", accelerate), "deepspeed-precision", "error")


# ---- memory

def test_the_arithmetic_of_offloading_is_shown(devsan):
    done = run(devsan, "--deepspeed", CONFIGS / "sound/trainer_zero3_offload.json", "--params", "70B", "--world-size", 16,
               "--gpus-per-node", 8)
    text = " ".join(done.stdout.split())
    assert "fp32 master weights: 70.0 billion x 4 bytes / 16 ranks = 16.3 GiB" in text
    assert "all ranks of a node: 8 x 73.3 GiB = 586.7 GiB" in text


@pytest.mark.parametrize("words", [["--params", "many"], ["--params", "0"], ["--params", "-3B"], ["--world-size", "0"], ["--colour"]])
def test_a_wrong_option_is_wrong_usage(devsan, words):
    done = run(devsan, *words)
    assert done.returncode == 2 and done.stdout == "" and "devsan: doctor: " in done.stderr


@pytest.mark.parametrize("given, shown", [("7B", "7.0 billion"), ("350M", "350.0 million"), ("1.5e9", "1.5 billion"),
                                          ("0.5b", "500.0 million"), ("1t", "1000.0 billion"), ("7000000000", "7.0 billion")])
def test_parameters_are_counted_with_and_without_a_suffix(devsan, given, shown):
    done = run(devsan, "--deepspeed", CONFIGS / "sound/trainer_zero3_offload.json", "--params", given)
    assert shown + " parameters" in " ".join(done.stdout.split())


@pytest.mark.parametrize("given, meant", [("7", "did you mean 7B?"), ("0.5", "did you mean 0.5B?"), ("175", "did you mean 175B?"),
                                          ("7000000000B", "did you mean 7000000000?"), ("1e20", "no model has 1e20"),
                                          ("many", "'many' is not a number"), ("7GB", "'7GB' is not a number")])
def test_a_number_of_parameters_that_no_model_has_is_wrong_usage(devsan, given, meant):
    done = run(devsan, "--params", given)
    assert done.returncode == 2 and done.stdout == "" and meant in done.stderr


# ---- machines

def test_a_driver_is_asked(devsan, driver):
    result = diagnosis(devsan, env=driver())
    assert [gpu["name"] for gpu in result["machine"]["gpus"]] == ["Toy 100", "Toy 100"]
    assert result["machine"]["driver"] == "550.54.14" and result["machine"]["cuda"] == 12040
    assert "2 GPUs (2 x Toy 100)" in lines(result, "driver", "ok")[0]["found"]


def test_a_driver_that_does_not_start_is_an_error(devsan, driver):
    result = diagnosis(devsan, env=driver(status=999))
    assert "CUDA_ERROR_UNKNOWN" in lines(result, "driver", "error")[0]["found"]


def test_a_driver_that_crashes_takes_only_its_own_process_down(devsan, driver):
    result = diagnosis(devsan, env=driver(status="*(volatile int*)0"))
    assert "signal 11" in lines(result, "driver", "error")[0]["found"]


@pytest.mark.parametrize("value, level", [("0,1", "ok"), ("1", "ok"), ("2", "error"), ("0,0", "error"), ("", "warning"), ("-1", "warning")])
def test_cuda_visible_devices_is_held_against_the_gpus(devsan, driver, value, level):
    result = diagnosis(devsan, env={**driver(), "CUDA_VISIBLE_DEVICES": value})
    assert [line["level"] for line in lines(result, "visible-devices")] == [level]


def test_bf16_without_its_hardware_is_a_warning(devsan, driver, tmp_path):
    config = tmp_path / "ds.json"
    config.write_text('{"train_batch_size": 8, "bf16": {"enabled": true}}')
    result = diagnosis(devsan, "--deepspeed", config, env=driver())
    assert "compute capability 7.0" in lines(result, "deepspeed-precision", "warning")[0]["found"]


# ---- Python

def make_python(folder, packages, torch=None):
    """A Python with the packages of a folder: their metadata, and of torch what tells how it was built."""
    site = folder / "site"
    for name, version in packages.items():
        (site / f"{name}-{version}.dist-info").mkdir(parents=True)
    if torch:
        (site / "torch/lib").mkdir(parents=True)
        (site / "torch/__init__.py").touch()
        (site / "torch/version.py").write_text(f"__version__ = '{packages['torch']}'\ncuda = {torch['cuda']!r}\n")
        (site / "torch/lib/libtorch_python.so").write_bytes(b"\0" + torch["architectures"].encode() + b"\0")
    return {"PYTHONPATH": str(site)}


def test_a_package_with_a_known_bug_is_told_with_its_thread(devsan, tmp_path):
    env = make_python(tmp_path, {"deepspeed": "0.14.2", "accelerate": "1.1.0"})
    result = diagnosis(devsan, "--python", sys.executable, "--deepspeed", CONFIGS / "sound/trainer_zero3_offload.json", env=env)
    found = lines(result, "known-bugs", "error")
    assert "https://github.com/deepspeedai/DeepSpeed/issues/5469" in [line["source"] for line in found]
    assert any("accelerate 1.1.0" in line["found"] for line in lines(result, "known-bugs", "warning"))


def test_a_build_of_torch_is_held_against_driver_and_gpus(devsan, driver, tmp_path):
    env = make_python(tmp_path, {"torch": "2.99.0+cu130"}, {"cuda": "13.0", "architectures": "sm_80 sm_90"})
    result = diagnosis(devsan, "--python", sys.executable, env={**driver(), **env})
    assert result["python"]["torch"] == "2.99.0+cu130" and result["python"]["torch_cuda"] == "13.0"
    assert "580.65.06" in lines(result, "torch-driver", "error")[0]["cure"]
    assert "compute capability 7.0" in lines(result, "arch-list", "error")[0]["found"]


def test_the_hooks_of_the_torch_at_hand_are_named(devsan, python):
    result = diagnosis(devsan, "--python", python)
    found = lines(result, "hooks")
    assert len(found) == 1 and "devsan takes the hooks in" in found[0]["found"]


def test_a_python_that_is_none_is_an_error(devsan, tmp_path):
    result = diagnosis(devsan, "--python", tmp_path / "python")
    assert lines(result, "torch", "error") and result["python"]["path"] is None


# ---- how it is shown

def test_the_terminal_gets_80_columns_in_groups(devsan):
    done = run(devsan, "--deepspeed", CONFIGS / "broken/deepspeed-offload.param_at_stage_2.json", "--params", "7B")
    shown = done.stdout.splitlines()
    assert done.returncode == 1 and "\x1b" not in done.stdout
    longest = [line for line in shown if len(line) > 80 and not re.fullmatch(r"( *\w+)? +\S*/\S*", line)]  # one URL or path
    assert not longest
    headings = re.findall(r'^DEVSAN_GROUP\(\w+, "(.*)"\)$', (ROOT / "doctor/groups.def").read_text(), re.M)
    assert [line for line in shown if line in headings] == headings
    assert re.fullmatch(r"\d+ errors?, .*\d+ ok\.", shown[-1])
    assert "\x1b[1;31m" in run(devsan, "--color", "always", "--deepspeed", "/nonexistent").stdout


@pytest.mark.parametrize("color", ["never", "always"])
def test_urls_and_paths_are_never_broken(devsan, tmp_path, color):
    folder = tmp_path / ("a_folder_with_a_long_name_" * 3)
    folder.mkdir()
    config = folder / "ds.json"
    config.write_text('{"train_batch_size": "4", "fp16": {"enabled": true}, "bf16": {"enabled": true}}')
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run(devsan, "--color", color, "--deepspeed", config).stdout)
    result = diagnosis(devsan, "--deepspeed", config)
    for line in lines(result):
        for word in (line["found"] + " " + (line["source"] if line["level"] != "ok" else "")).split():
            assert "/" not in word or re.search(rf"(^|\s){re.escape(word)}(\s|$)", shown), word
    assert str(config) in shown


def test_json_is_written_to_a_file(devsan, tmp_path):
    done = run(devsan, "--json", tmp_path / "doctor.json")
    assert done.stdout == ""
    jsonschema.validate(json.loads((tmp_path / "doctor.json").read_text()), SCHEMA)


def test_every_check_is_documented_with_its_own_words():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", (ROOT / "docs/doctor.md").read_text(), re.M)
    assert rows == [(name.replace("_", "-"), words.replace('\\"', '"')) for name, _, words in CHECKS]


def test_lines_name_checks_and_groups_of_the_list(devsan):
    known = {(name.replace("_", "-"), group) for name, group, _ in CHECKS}
    assert {(line["check"], line["group"]) for line in diagnosis(devsan)["checks"]} <= known
