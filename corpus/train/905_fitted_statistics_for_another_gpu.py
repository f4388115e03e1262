# source: PriorLabs/TabPFN PR#911 (move fitted cache to device to fix multi-gpu kv cache)
# mechanism: [model-parallel hook] statistics fitted on one GPU are cached by the preprocessing pipeline and applied to a chunk that another GPU predicts
# phase: predict; failing op: aten::sub (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)
d1 = torch.device("cuda", 1)


class Standardize:
    def fit(self, x):
        return {"mean": x.mean(0), "std": x.std(0) + 1e-6}

    def transform(self, x, cache):
        return (x - cache["mean"]) / cache["std"]  # RAISE  # ALSO

class Pipeline:
    def __init__(self, *steps):
        self.steps, self.fitted = steps, [None] * len(steps)

    def __call__(self, x, use_fitted=False):
        for i, step in enumerate(self.steps):
            cache = self.fitted[i] if use_fitted else step.fit(x)  # ROOT
            self.fitted[i] = cache
            x = step.transform(x, cache)  # ALSO
        return x

pre = Pipeline(Standardize())
heads = {d: nn.Linear(3, 2).to(d) for d in (dev, d1)}
F.mse_loss(heads[dev](pre(torch.randn(8, 3, device=dev))), torch.zeros(8, 2, device=dev)).backward()
out = [head(pre(x.to(d), use_fitted=True)).cpu() for (d, head), x in zip(heads.items(), torch.randn(4, 3).chunk(2))]
