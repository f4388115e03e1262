# source: roboflow/inference PR#2560
# mechanism: [data not moved] the session computes wherever its input is; tokens stay on the CPU, so text vectors come back on the CPU and meet image vectors on CUDA only when compared
# phase: evaluation (zero-shot classification); failing op: aten::mm
# expect: raises
import torch


class Session:
    """Runs on the device of what it is fed, with its own copy of the weights there."""

    def __init__(self, weight):
        self.copies = {weight.device: weight}

    def run(self, feed):
        weight = self.copies.get(feed.device)
        if weight is None:
            weight = self.copies[feed.device] = next(iter(self.copies.values())).to(feed.device)
        return feed @ weight


def tokenize(texts, length=6):
    out = torch.zeros(len(texts), length)
    for row, text in zip(out, texts):
        codes = [ord(c) / 128 for c in text][:length]
        row[: len(codes)] = torch.tensor(codes)
    return out


class ZeroShot:
    def __init__(self, device):
        self.device = torch.device(device)
        self.vision = Session(torch.randn(12, 4))
        self.text = Session(torch.randn(6, 4))

    def embed_images(self, images):
        return self.vision.run(images.to(self.device).flatten(1))

    def embed_text(self, texts):
        tokens = tokenize(texts)  # ROOT
        return self.text.run(tokens)  # ALSO

    def compare(self, a, b):
        a = a / a.norm(dim=-1, keepdim=True)
        b = b / b.norm(dim=-1, keepdim=True)
        return a @ b.T  # RAISE


model = ZeroShot("cuda:0")
images = model.embed_images(torch.rand(3, 3, 2, 2))
labels = model.embed_text(["a crack", "a stain"])
print(model.compare(images, labels).softmax(-1))
