"""diffusers: `train` a UNet and an average of its weights, or run it in a pipeline that is offloaded by `model`,
`sequential` or `group`."""

import sys

import torch
from clean_parts import STEPS
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel

WAY = sys.argv[3]


def make_unet():
    torch.manual_seed(0)
    return UNet2DModel(sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 16), layers_per_block=1,
                       norm_num_groups=4, attention_head_dim=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                       up_block_types=("AttnUpBlock2D", "UpBlock2D"))


def loss_of(unet, scheduler, images):
    images = images.to("cuda")
    noise = torch.randn_like(images)
    times = torch.randint(0, scheduler.config.num_train_timesteps, (len(images),), device="cuda")
    predicted = unet(scheduler.add_noise(images, noise, times), times).sample
    return torch.nn.functional.mse_loss(predicted, noise)


def evaluate(unet, scheduler, average):
    """Of the averaged weights, which take the place of the trained ones for that time."""
    average.store(unet.parameters())
    average.copy_to(unet.parameters())
    unet.eval()
    with torch.no_grad():
        total = sum(loss_of(unet, scheduler, torch.randn(1, 1, 8, 8)).item() for _ in range(STEPS))
    unet.train()
    average.restore(unet.parameters())
    return total / STEPS


def train():
    unet, scheduler = make_unet(), DDPMScheduler(num_train_timesteps=50)
    average = EMAModel(unet.parameters(), decay=0.9, model_cls=UNet2DModel, model_config=unet.config)
    unet.cuda()
    average.to("cuda")
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=STEPS)
    for step in range(STEPS):
        loss = loss_of(unet, scheduler, torch.randn(2, 1, 8, 8))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        average.step(unet.parameters())
        if step == STEPS // 2:
            evaluate(unet, scheduler, average)
    print(f"evaluation: {evaluate(unet, scheduler, average):.3f}")


def offloaded_pipeline():
    made = DDPMPipeline(make_unet().eval(), DDPMScheduler(num_train_timesteps=50))
    made.set_progress_bar_config(disable=True)
    if WAY == "model":
        made.enable_model_cpu_offload()
    elif WAY == "sequential":
        made.enable_sequential_cpu_offload()
    else:
        made.unet.enable_group_offload(onload_device=torch.device("cuda"), offload_type="leaf_level")
    return made


if WAY == "train":
    train()
else:
    pipeline = offloaded_pipeline()
    for _ in range(2):
        images = pipeline(batch_size=1, num_inference_steps=STEPS, output_type="np").images
        assert images.shape == (1, 8, 8, 1), images.shape
