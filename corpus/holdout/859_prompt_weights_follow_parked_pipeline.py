# source: huggingface/diffusers#3182 (lpw_stable_diffusion with enable_model_cpu_offload)
# mechanism: [model-parallel hook] with offload hooks the pipeline's components are parked on the CPU, so its device says 'cpu'; prompt weights are made there, the embeddings come out of the encoder on the GPU
# phase: prompt encoding; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Pipeline:
    def __init__(self):
        self.components = {"vae": nn.Linear(4, 4), "text_encoder": nn.Embedding(20, 6), "unet": nn.Linear(6, 6)}

    @property
    def device(self):
        return next(next(iter(self.components.values())).parameters()).device

    def enable_offload(self, where):
        def onload(mod, args):
            mod.to(where)
            return tuple(a.to(where) for a in args)
        for mod in self.components.values():
            mod.register_forward_pre_hook(onload)

def parse(prompt):
    words = [w.partition(":") for w in prompt.split()]
    return [len(w) for w, _, _ in words], [float(v or 1.0) for _, _, v in words]

def weighted_embeddings(pipe, prompts):
    tokens, weights = zip(*(parse(p) for p in prompts))
    ids = torch.tensor(tokens, device=pipe.device)
    embeddings = pipe.components["text_encoder"](ids)
    weights = torch.tensor(weights, device=pipe.device)  # ROOT
    before = embeddings.mean(dim=(1, 2), keepdim=True)
    embeddings = embeddings * weights.unsqueeze(-1)  # RAISE  # ALSO
    return embeddings * (before / embeddings.mean(dim=(1, 2), keepdim=True))

pipe = Pipeline()
pipe.enable_offload(dev)
with torch.no_grad():
    pipe.components["unet"](weighted_embeddings(pipe, ["red:1.3 fox", "blue whale:0.8"]))
