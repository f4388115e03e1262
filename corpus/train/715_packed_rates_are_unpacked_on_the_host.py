# source: wochenlong/lora-scripts-next PR#320
# mechanism: [optimizer state load] optimizer stores its per-element rates quantized; load_state_dict rebuilds them itself from a checkpoint read with map_location="cpu", past the cast of torch.optim
# phase: checkpoint load -> optimizer step; failing op: aten::where
# expect: raises
import io

import torch

dev = torch.device("cuda", 0)


class Automagic(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, lr_bump=1e-4):
        super().__init__(params, {"lr": lr, "lr_bump": lr_bump})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state, sign, bump = self.state[p], p.grad.sign(), group["lr_bump"]
                mask = state.setdefault("lr_mask", torch.full_like(p, group["lr"]))
                agree = sign == state.get("last_sign", sign)
                state["lr_mask"] = torch.where(agree, mask + bump, mask - bump).clamp_(1e-6, 1e-2)  # RAISE
                state["last_sign"] = sign
                p.sub_(sign * state["lr_mask"])

    def state_dict(self):
        packed = super().state_dict()
        for k, s in packed["state"].items():
            scale = float(s["lr_mask"].max()) / 255
            packed["state"][k] = dict(s, lr_mask={"values": (s["lr_mask"] / scale).round().to(torch.uint8), "scale": scale})
        return packed

    def load_state_dict(self, state_dict):
        packed = [s.pop("lr_mask") for s in state_dict["state"].values()]
        super().load_state_dict(state_dict)
        for p, q in zip(self.param_groups[0]["params"], packed):
            self.state[p]["lr_mask"] = q["values"].float() * q["scale"]  # ROOT

net, file = torch.nn.Linear(3, 2).to(dev), io.BytesIO()
for resume in (False, True):
    optimizer = Automagic(net.parameters())
    if resume:
        file.seek(0)
        optimizer.load_state_dict(torch.load(file, map_location="cpu"))  # ALSO
    net(torch.randn(4, 3, device=dev)).square().mean().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), file)
