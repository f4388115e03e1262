"""What `devsan doctor` says of configs is what DeepSpeed does with them, in the release that its list of keys is made from."""

import json
import subprocess

import pytest

from harness import ROOT
from test_doctor import CONFIGS, diagnosis, lines

pytestmark = pytest.mark.slow

# Says of each config "name accepted" or "name refused: why". What transformers would fill in gets a value.
DEEPSPEED = """
import json, pathlib, sys
from deepspeed.runtime.config import DeepSpeedConfig

FILLED = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0}

def filled(section, path=""):
    result = {}
    for key, value in section.items():
        if isinstance(value, dict):
            value = filled(value, path + key + ".")
        elif value == "auto":
            if path.startswith("zero_optimization."):
                continue
            value = path == "bf16." if key == "enabled" else FILLED.get(path + key, 1)
        result[key] = value
    return result

def read(path):
    try:
        return filled(json.loads(path.read_text()))
    except ValueError:
        return str(path)

for path in map(pathlib.Path, sys.argv[1:]):
    try:
        DeepSpeedConfig(read(path) if "doubled" not in path.name else str(path))
        print("result", path.name, "accepted")
    except Exception as error:
        print("result", path.name, "refused:", type(error).__name__, str(error).splitlines()[:1])
"""

# DeepSpeed accepts these configs, and does not do what they ask for, or fails once there is a model.
NOT_DONE = {"deepspeed-auto.momentum.json", "deepspeed-nvme.without_path.json", "deepspeed-offload.param_at_stage_2.json",
            "deepspeed-offload.class_of_optimizer.json"}
# Right on eight ranks; here there is one.
FOR_EIGHT_RANKS = {"pretraining_zero1.json"}


@pytest.fixture(scope="module")
def verdicts(newest_libraries, tmp_path_factory):
    script = tmp_path_factory.mktemp("deepspeed") / "read.py"
    script.write_text(DEEPSPEED)
    done = subprocess.run([newest_libraries, script, *sorted(map(str, CONFIGS.glob("*/*.json")))], capture_output=True, text=True,
                          check=True, timeout=300)
    words = (line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("result "))
    return {name: verdict for _, name, verdict in words}


@pytest.mark.parametrize("config", sorted(CONFIGS.glob("*/*.json")), ids=lambda path: path.name)
def test_deepspeed_refuses_what_the_doctor_calls_an_error(devsan, verdicts, config):
    result = diagnosis(devsan, "--deepspeed", config)
    wrong = bool([line for line in lines(result, level="error") if line["group"] == "config"])
    if config.name in NOT_DONE:
        assert wrong and verdicts[config.name] == "accepted"
    elif config.name not in FOR_EIGHT_RANKS:
        assert wrong == verdicts[config.name].startswith("refused"), verdicts[config.name]


def test_the_list_of_keys_is_what_the_script_reads_from_the_libraries(newest_libraries, tmp_path):
    made = tmp_path / "keys.json"
    subprocess.run([newest_libraries, ROOT / "scripts/deepspeed_keys", "--out", made], capture_output=True, check=True, timeout=300)
    assert json.loads(made.read_text()) == json.loads((ROOT / "doctor/config/known_keys.json").read_text())


def test_the_versions_in_the_documentation_are_those_of_the_list():
    versions = json.loads((ROOT / "doctor/config/known_keys.json").read_text())["versions"]
    page = " ".join((ROOT / "docs/doctor.md").read_text().split())
    for name, version in versions.items():
        assert f"{name} {version}" in page
        assert f"{name}=={version}\n" in (ROOT / "tests/integration/library_requirements.txt").read_text()
