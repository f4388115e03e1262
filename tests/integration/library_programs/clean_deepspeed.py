"""DeepSpeed's ZeRO: `STAGE [optimizer] [parameters] [pinned] [init]`, where `optimizer` and `parameters` are offloaded
to the host, and with `init` the model is partitioned as it is made."""

import contextlib
import pathlib
import sys

import deepspeed
import torch
from clean_parts import LOCAL_RANK, STEPS, Classifier, evaluate, make_batches

FOLDER, STAGE, WORDS = pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]


def configuration():
    zero = {"stage": STAGE}
    if STAGE == 3:
        zero["stage3_param_persistence_threshold"] = 100  # else so small a model is never partitioned
    host = {"device": "cpu", "pin_memory": "pinned" in WORDS}
    if "optimizer" in WORDS:
        zero["offload_optimizer"] = host
    if "parameters" in WORDS:
        zero["offload_param"] = host
    # torch's own AdamW: DeepSpeed's optimizers are C++ that it would compile on the spot.
    return {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0, "zero_optimization": zero,
            "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}


def main():
    torch.cuda.set_device(LOCAL_RANK)
    deepspeed.init_distributed()
    torch.manual_seed(0)
    making = deepspeed.zero.Init(config_dict_or_path=configuration()) if "init" in WORDS else contextlib.nullcontext()
    with making:
        model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=configuration())
    for step, (tokens, targets) in enumerate(make_batches(seed=LOCAL_RANK)):
        loss = engine(tokens.to(engine.device), targets.to(engine.device))
        engine.backward(loss)
        engine.step()
        if step == STEPS // 2:
            evaluate(engine, engine.device)
            engine.save_checkpoint(str(FOLDER))
    print(f"evaluation: {evaluate(engine, engine.device):.3f}")
    torch.distributed.destroy_process_group()


main()
