# source: huggingface/diffusers#1991 (checkpoint_merger; later code: torch.load(checkpoint_path_1, map_location="cpu"))
# mechanism: [EMA / shadow copy] second checkpoint was saved from the GPU and torch.load puts it back there; the weights it is blended into are on the CPU
# phase: checkpoint merge; failing op: aten::sub
# expect: raises
# root: checkpoint_merger.py: torch.load(...) without map_location
import io
import torch

dev = torch.device('cuda', 0)


buf = io.BytesIO()
torch.save(torch.nn.Linear(3, 3).to(dev).state_dict(), buf)
buf.seek(0)
unet = torch.nn.Linear(3, 3)
theta_0, theta_1 = unet.state_dict(), torch.load(buf)  # ROOT
for k in theta_0:
    theta_0[k] = theta_0[k] + 0.4 * (theta_1[k] - theta_0[k])  # RAISE
unet.load_state_dict(theta_0)
