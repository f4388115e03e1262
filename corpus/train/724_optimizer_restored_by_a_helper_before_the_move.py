# source: xinzhuma/monodle#7 (same order in jwyang/faster-rcnn.pytorch#475, PR#515)
# mechanism: [optimizer state load] load_state_dict casts the state to the device of the parameters, which are still on the CPU; the model moves afterwards, the state stays
# phase: first optimizer step after resuming; failing op: aten::lerp_ (cpu exp_avg, cuda grad)
# expect: raises
import io
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

def save_checkpoint(model, optimizer, epoch):
    buf = io.BytesIO()
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, buf)
    return buf

def load_checkpoint(model, optimizer, file, map_location):
    file.seek(0)
    ckpt = torch.load(file, map_location)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    return ckpt["epoch"]

class Trainer:
    def __init__(self, model, device, resume=None):
        self.model, self.device, self.epoch = model, device, 0  # ALSO
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
        if resume is not None:
            self.epoch = load_checkpoint(self.model, self.optimizer, resume, map_location=self.device)  # ROOT
        self.model.to(self.device)  # ALSO

    def train_one_epoch(self):
        for _ in range(2):
            x = torch.randn(4, 3, device=self.device)
            self.optimizer.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.optimizer.step()  # RAISE
        self.epoch += 1

first = Trainer(nn.Linear(3, 2), dev)
first.train_one_epoch()
second = Trainer(nn.Linear(3, 2), dev, resume=save_checkpoint(first.model, first.optimizer, first.epoch))
second.train_one_epoch()
