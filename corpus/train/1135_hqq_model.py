# source: huggingface/transformers PR#38466
# mechanism: the packed weights of quantized layers are no parameters or buffers, so moving the whole model by its inherited method leaves them on the CPU.
# expect: raises
import torch
from torch import nn


class HQQLinear(nn.Module):
    def __init__(self, linear, group_size=8, bits=4):
        super().__init__()
        weight = linear.weight.data
        self.bias = linear.bias
        groups = weight.reshape(-1, group_size)
        low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
        scale = (high - low).clamp_min(1e-6) / (2**bits - 1)
        self.W_q = ((groups - low) / scale).round().to(torch.uint8)
        self.meta = {"scale": scale, "zero": low, "shape": tuple(weight.shape)}

    def move(self, device):
        self.W_q = self.W_q.to(device)
        self.meta = {k: v.to(device) if torch.is_tensor(v) else v for k, v in self.meta.items()}
        return self

    def dequantize(self):
        values = self.W_q.float() * self.meta["scale"] + self.meta["zero"]
        return values.view(self.meta["shape"])

    def forward(self, x):
        return nn.functional.linear(x, self.dequantize().to(x.dtype), self.bias)  # RAISE


class PreTrainedModel(nn.Module):
    quantization_method = None

    def to(self, *args, **kwargs):
        if self.quantization_method == "bnb":
            raise ValueError("`.to` is not supported for this quantization")
        return super().to(*args, **kwargs)  # ROOT


class HQQQuantizer:
    def __init__(self, skip=("lm_head",)):
        self.skip = skip

    def process(self, model):
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, nn.Linear) and name not in self.skip:
                    setattr(parent, name, HQQLinear(child))
        model.quantization_method = "hqq"
        return model


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.wi = nn.Linear(dim, 2 * dim)
        self.wo = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.wo(torch.relu(self.wi(x)))


class EncoderModel(PreTrainedModel):
    def __init__(self, vocab=30, dim=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(FeedForward(dim) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab)

    @classmethod
    def from_pretrained(cls, quantizer=None):
        torch.manual_seed(0)
        model = cls().eval()
        return quantizer.process(model) if quantizer is not None else model

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


class Pipeline:
    def __init__(self, **models):
        self.models = models

    def to(self, device):
        for model in self.models.values():
            model.to(device)
        self.device = torch.device(device)
        return self

    @torch.no_grad()
    def __call__(self, ids):
        ids = ids.to(self.device)
        return {name: model(ids).std().item() for name, model in self.models.items()}


def main():
    pipeline = Pipeline(plain=EncoderModel.from_pretrained(), hqq=EncoderModel.from_pretrained(HQQQuantizer()))
    ids = torch.randint(0, 30, (2, 5))
    print(pipeline.to("cpu")(ids))
    print(pipeline.to("cuda:0")(ids))


if __name__ == "__main__":
    main()
