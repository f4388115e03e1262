# source: pytorch/vision#7683
# mechanism: [factory call without device=] colour palette of the drawing helper is built on the CPU, image and masks are on the GPU
# phase: visualisation; failing op: aten::index_put_ (cuda image, cpu value)
# expect: raises
import torch

dev = torch.device("cuda", 0)


def default_palette(n):
    base = (2 ** 25 - 1, 2 ** 15 - 1, 2 ** 21 - 1)
    return [tuple((i * b) % 255 for b in base) for i in range(1, n + 1)]

def parse_colors(colors, n, dtype):
    if colors is None:
        colors = default_palette(n)
    if isinstance(colors, tuple):
        colors = [colors] * n
    return [torch.tensor(color, dtype=dtype) for color in colors]  # ROOT

@torch.no_grad()
def overlay_masks(image, masks, alpha=0.8, colors=None):
    if masks.ndim == 2:
        masks = masks[None]
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("image and masks differ in size")
    canvas = image.detach().clone()
    for mask, color in zip(masks, parse_colors(colors, masks.shape[0], image.dtype)):
        canvas[:, mask] = color[:, None]  # RAISE  # ALSO
    out = image * (1 - alpha) + canvas * alpha
    return out.to(image.dtype)

class Preview:
    def __init__(self, threshold=0.5):
        self.threshold, self.frames = threshold, []

    def on_batch_end(self, images, outputs):
        for image, scores in zip(images, outputs):
            shown = (image * 255).to(torch.uint8)
            self.frames.append(overlay_masks(shown, scores.sigmoid() > self.threshold))

images = torch.rand(2, 3, 12, 12, device=dev)
net = torch.nn.Conv2d(3, 4, 3, padding=1).to(dev)
Preview().on_batch_end(images, net(images).detach())
