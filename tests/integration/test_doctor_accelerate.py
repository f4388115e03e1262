"""What `devsan doctor` says of values in accelerate's config is what `accelerate launch` and the workers that it starts do
with them, in the release that its list of keys is made from."""

import subprocess

import pytest

from test_doctor import CONFIGS, diagnosis, lines

pytestmark = pytest.mark.slow

# Does what `accelerate launch` and a worker do with each config before there is a model, and says "name accepted" or "name
# refused: why". This machine may have no GPU and no library for fp8.
START = """
import os, sys
from unittest import mock
import torch.distributed.run as torchrun
from accelerate.commands import launch
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import launch as preparing, dataclasses as plugins

def start(path):
    args = launch.launch_command_parser().parse_args(["--config_file", path, "program.py"])
    args, defaults, precision = launch._validate_launch_command(args)
    fields = [*defaults.deepspeed_config, *(["mixed_precision"] if precision else [])]
    args.deepspeed_fields_from_accelerate_config = ",".join(fields)
    if args.use_deepspeed:
        command, environment = preparing.prepare_deepspeed_cmd_env(args)
    elif args.use_fsdp or args.use_megatron_lm or args.multi_gpu:
        command, environment = None, preparing.prepare_multi_gpu_env(args)
    else:
        command, environment = preparing.prepare_simple_launcher_cmd_env(args)
    if command is None:
        known = torchrun.get_args_parser()
        torchrun.config_from_args(preparing._filter_args(args, known, ["--training_script", "program.py"]))
    os.environ.update({key: str(value) for key, value in environment.items()})
    work(args)

def work(args):
    plugins.TorchDynamoPlugin()
    if args.use_fsdp:
        plugins.FullyShardedDataParallelPlugin()
    if args.use_deepspeed:
        plugins.DeepSpeedPlugin()
    if args.use_megatron_lm:
        plugins.MegatronLMPlugin()
    if args.use_parallelism_config:
        ParallelismConfig()
    if args.mixed_precision.lower() == "fp8":
        recipes = {"TE": plugins.TERecipeKwargs, "MSAMP": plugins.MSAMPRecipeKwargs}
        recipes.get(plugins.FP8BackendType(os.environ.get("ACCELERATE_FP8_BACKEND", "NO")).value, str)()

for there in ("accelerate.utils.launch.is_fp8_available", "accelerate.utils.dataclasses.is_transformer_engine_available",
              "accelerate.utils.dataclasses.is_cuda_available"):
    mock.patch(there, lambda *_, **__: True).start()
mock.patch("torch.cuda.current_device", lambda: 0).start()
for path in sys.argv[1:]:
    before = dict(os.environ)
    try:
        start(path)
        print("result", os.path.basename(path), "accepted", flush=True)
    except (Exception, SystemExit) as error:
        print("result", os.path.basename(path), "refused:", type(error).__name__, str(error).splitlines()[:1], flush=True)
    os.environ.clear()
    os.environ.update(before)
"""

# Values that are written into a config, by the section and the type that reads it. Some are right, and some are not.
FSDP = {"fsdp_version": ["1", "2", "3", "'2'", "two", ""],
        "fsdp_sharding_strategy": ["FULL_SHARD", "full_shard", "1", "5", "6", "FULL_SHRAD", "", "HYBRID_SHARD_ZERO2", "true"],
        "fsdp_reshard_after_forward": ["true", "'yes'", "FULL_SHARD", "SHARD_GRAD_OP", "0", "2"],
        "fsdp_auto_wrap_policy": ["TRANSFORMER_BASED_WRAP", "transformer_based_wrap", "TRANSFORMER_BASED", "NO_WRAP", "", "1"],
        "fsdp_backward_prefetch": ["BACKWARD_PRE", "no_prefetch", "1", "2", "3", "PRE", ""],
        "fsdp_state_dict_type": ["FULL_STATE_DICT", "sharded_state_dict", "LOCAL_STATE_DICT", "2", "4", "SHARDED", ""],
        "fsdp_offload_params": ["true", "maybe", "1", "2", "", "on"],
        "fsdp_use_orig_params": ["true", "maybe", "1", "2", ""],
        "fsdp_sync_module_states": ["true", "false", "'false'", "", "''", "0", "maybe"],
        "fsdp_cpu_ram_efficient_loading": ["true", "false", "maybe", "'false'", ""],
        "fsdp_activation_checkpointing": ["true", "perhaps"], "fsdp_activation_checkpointing_offload": ["true", "false"],
        "fsdp_min_num_params": ["1", "1e8", "many"]}
SIZES = {"dp_replicate_size": ["1", "two", "0"], "cp_size": ["1", "'2'"], "cp_backend": ["torch", "ring"],
         "cp_comm_strategy": ["alltoall", "ring"]}
OUTERMOST = {"num_processes": ["2", "'2'", "eight", "-1", "2.5"], "num_machines": ["1", "'2'", ""], "machine_rank": ["0", "'0'"],
             "gpu_ids": ["0,1", "all", "0", "'0'"], "main_process_port": ["29502", "'29502'", "0", "70000"],
             "mixed_precision": ["bf16", "BF16", "float16", "no", "'no'", ""], "debug": ["true"],
             "dynamo_backend": ["inductor", "INDUCTR", "no", "'no'"], "compute_environment": ["LOCAL_MACHINE", "LOCAL"],
             "use_cpu": ["true", "maybe", "'no'"]}
DYNAMO = {"dynamo_backend": ["INDUCTOR", "inductr"], "backend": ["inductor", "inductr"], "use_fullgraph": ["maybe", "true"]}
DEEPSPEED = {"zero_stage": ["2", "'2'", "two", "2.0", ""], "gradient_clipping": ["1.0", "auto", "none", "'0.5'"],
             "gradient_accumulation_steps": ["4", "auto"], "offload_optimizer_device": ["CPU", "none"],
             "zero3_init_flag": ["maybe", "'true'"]}
MEGATRON = {"megatron_lm_tp_degree": ["2", "two", "'2'", ""], "megatron_lm_sequence_parallelism": ["true", "maybe"],
            "megatron_lm_gradient_clipping": ["1.0", "x"], "megatron_lm_num_micro_batches": ["2", "1.5", ""]}
FP8 = {"backend": ["TE", "te", "AO"], "margin": ["0", "x"], "fp8_format": ["hybrid", "E4M4"], "opt_level": ["O3"],
       "amax_compute_algo": ["MAX", "min"]}


def written(kind, section="", before="", values=()):
    """name: text of a config, for each value of each key."""
    found = {}
    for key, choices in values.items():
        for number, value in enumerate(choices):
            top = f"distributed_type: {kind}\n" + (f"{key}: {value}\n" if not section else "")
            count = "" if key == "num_processes" else "num_processes: 2\n"
            inside = f"{section}:\n{before}  {key}: {value}\n" if section else ""
            found[f"{kind}-{section}-{len(before)}-{key}-{number}.yaml".replace("'", "")] = top + count + inside
    return found


def variants():
    by_size = "  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n"
    recipes = {key: choices for key, choices in FP8.items() if key != "backend"}
    second = {key: choices for key, choices in FSDP.items() if key != "fsdp_version"}
    return {**written("FSDP", "fsdp_config", "", FSDP), **written("FSDP", "fsdp_config", "  fsdp_version: 2\n", second),
            **written("FSDP", "fsdp_config", by_size, {"fsdp_min_num_params": FSDP["fsdp_min_num_params"]}),
            **written("MULTI_GPU", "parallelism_config", "  parallelism_config_dp_shard_size: 2\n",
                      {f"parallelism_config_{key}": choices for key, choices in SIZES.items()}),
            **{name: text for kind in ("MULTI_GPU", "'NO'", "FSDP", "DEEPSPEED", "MULTI_CPU")
               for name, text in written(kind, "", "", OUTERMOST).items()},
            **written("MULTI_GPU", "dynamo_config", "", DYNAMO), **written("DEEPSPEED", "deepspeed_config", "", DEEPSPEED),
            **written("MEGATRON_LM", "megatron_lm_config", "", MEGATRON),
            **{name: text + "mixed_precision: fp8\n" for before in ("  backend: TE\n", "  backend: AO\n")
               for name, text in written("MULTI_GPU", "fp8_config", before, recipes).items()},
            **{name: text + "mixed_precision: fp8\n"
               for name, text in written("MULTI_GPU", "fp8_config", "", {"backend": FP8["backend"]}).items()}}


def wrong(devsan, config):
    result = diagnosis(devsan, "--accelerate", config, "--python", "/bin/true")
    return [line["found"] for line in lines(result, level="error") if line["group"] == "config"]


def start_all(python, folder, configs):
    """name: what accelerate makes of it. DeepSpeed's config, where one names it, is in the folder."""
    script = folder / "start.py"
    script.write_text(START)
    (folder / "ds_config.json").write_text('{"train_batch_size": "auto", "zero_optimization": {"stage": 2}}')
    done = subprocess.run([python, script, *sorted(map(str, configs))], capture_output=True, text=True, check=True, cwd=folder,
                          timeout=600)
    words = (line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("result "))
    return {name: verdict for _, name, verdict in words}


def test_accelerate_starts_what_the_doctor_calls_sound_and_nothing_else(devsan, newest_libraries, tmp_path):
    configs = sorted(CONFIGS.glob("*/*.yaml"))
    verdicts = start_all(newest_libraries, tmp_path, configs)
    accepted = {config.name: verdicts[config.name] == "accepted" for config in configs}
    assert accepted == {config.name: config.parent.name == "sound" for config in configs}, verdicts


def test_accelerate_refuses_values_that_the_doctor_calls_an_error(devsan, newest_libraries, tmp_path):
    for name, text in variants().items():
        (tmp_path / name).write_text(text)
    verdicts = start_all(newest_libraries, tmp_path, tmp_path.glob("*.yaml"))
    told = {name: wrong(devsan, tmp_path / name) for name in verdicts}
    assert len(verdicts) == len(variants()) > 200
    assert not {name: (verdict, told[name], variants()[name]) for name, verdict in verdicts.items()
                if verdict.startswith("refused") != bool(told[name])}
