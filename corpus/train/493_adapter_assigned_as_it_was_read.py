# source: own; adapters that are loaded with assign=True at the top of a script
# mechanism: the checkpoint is read to the host, as it should be, and its tensors take the place of the parameters
# phase: forward; failing op: aten::linear
# expect: raises
import io

import torch
import torch.nn as nn

device = torch.device("cuda", 0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(device)
file = io.BytesIO()
torch.save({name: value.cpu() for name, value in net[2].state_dict().items()}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu")  # ALSO
net[2].load_state_dict(saved, assign=True)  # ROOT
net(torch.randn(5, 3, device=device))  # RAISE
