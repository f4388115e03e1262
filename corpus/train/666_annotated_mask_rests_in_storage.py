# source: facebookresearch/sam2#489, PR#490
# mechanism: [offloaded state] per-object masks rest in a nested dictionary on a storage device; a frame that was annotated is read from there, others come fresh from the GPU, and all are joined
# phase: evaluation (propagation through a video); failing op: aten::cat
# expect: raises
import torch
import torch.nn as nn


class MaskHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, frame, last):
        return self.mix(torch.cat([frame, last], dim=1))


class CellTracker:
    def __init__(self, head, movie, device, offload=False):
        self.head, self.device = head.to(device), device
        self.state = {
            "movie": movie.to(device),
            "storage": torch.device("cpu") if offload else device,
            "cells": {},
        }

    def annotate(self, name, at, outline):
        kept = self.state["cells"].setdefault(name, {})
        kept[at] = {"mask": outline.to(self.state["storage"]), "edited": True}

    def _infer(self, kept, at):
        last = kept[max(kept)]["mask"].to(self.device)
        mask = self.head(self.state["movie"][at:at + 1], last)
        return {"mask": mask.to(self.state["storage"]), "edited": False}, mask

    @torch.inference_mode()
    def propagate(self):
        for at in range(len(self.state["movie"])):
            per_cell = []
            for kept in self.state["cells"].values():
                if at in kept:
                    mask = kept[at]["mask"]  # ROOT
                else:
                    kept[at], mask = self._infer(kept, at)
                per_cell.append(mask)  # ALSO
            yield at, torch.cat(per_cell, dim=0) > 0  # RAISE


tracker = CellTracker(MaskHead(), torch.rand(3, 1, 8, 8), torch.device("cuda:0"), offload=True)
tracker.annotate("amoeba", 0, torch.ones(1, 1, 8, 8))
tracker.annotate("yeast", 0, torch.zeros(1, 1, 8, 8))
tracker.annotate("yeast", 1, torch.ones(1, 1, 8, 8))
areas = {at: masks.sum().item() for at, masks in tracker.propagate()}
print(areas)
