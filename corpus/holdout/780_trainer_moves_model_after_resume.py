# source: michuanhaohao/reid-strong-baseline#114; bohaohuang/mrs PR#47
# mechanism: [optimizer state load] main script loads model and optimizer, the trainer moves the model afterwards; the parameters move in place, the state that load_state_dict cast to them stays on the CPU
# phase: resume -> optimizer step; failing op: aten::_foreach_lerp_ / lerp_
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def create_trainer(model, optimizer, device):
    model.to(device)
    def update(x):
        optimizer.zero_grad()
        model(x.to(device)).pow(2).mean().backward()
        optimizer.step()  # RAISE
    return update

def run(resume=None):
    model = nn.Linear(4, 3)  # ALSO
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if resume is not None:
        ckpt = torch.load(io.BytesIO(resume), map_location="cpu")
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])  # ROOT
    update = create_trainer(model, optimizer, dev)  # ALSO
    update(torch.randn(6, 4))
    out = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
    return out.getvalue()

run(resume=run())
