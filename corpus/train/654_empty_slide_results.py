# source: ultralytics/yolov5#1617 (fix: the empty results are made with device=prediction.device)
# mechanism: images without detections keep a default empty tensor from the CPU; the results object takes the device of the first entry for all
# phase: inference; boxes / gain
# expect: raises
import numpy as np
import torch
import torch.nn as nn


def suppress(prediction, conf_thres=0.25, max_det=10):
    """Returns list of detections with shape: nx6 (x1, y1, x2, y2, conf, cls)"""
    xc = prediction[..., 4] > conf_thres  # candidates
    output = [torch.zeros(0, 6)] * prediction.shape[0]  # ROOT
    for xi, x in enumerate(prediction):  # image index, image inference
        x = x[xc[xi]]
        if not x.shape[0]:
            continue
        conf, j = (x[:, 5:] * x[:, 4:5]).max(1, keepdim=True)
        x = torch.cat((x[:, :4], conf, j.float()), 1)
        output[xi] = x[x[:, 4].argsort(descending=True)[:max_det]]
    return output  # ALSO


def rescale(shape1, coords, shape0):
    coords[:, :4] /= max(shape1) / max(shape0)
    coords[:, [0, 2]] = coords[:, [0, 2]].clamp(0, shape0[1])
    coords[:, [1, 3]] = coords[:, [1, 3]].clamp(0, shape0[0])
    return coords


class CellNet(nn.Module):
    def __init__(self, nc=3):
        super().__init__()
        self.conv = nn.Conv2d(3, 5 + nc, 8, stride=8)

    def forward(self, x):
        p = self.conv(x).flatten(2).transpose(1, 2)
        obj = (x.mean((1, 2, 3)) > 0.1).float()[:, None, None].expand(-1, p.shape[1], 1)
        return torch.cat((p[..., :4].abs() * 30 + 2, obj, p[..., 5:].softmax(-1)), -1)


class SlideReader(nn.Module):
    # input-robust model wrapper for passing np arrays, includes preprocessing and suppression
    conf = 0.25

    def __init__(self, model):
        super().__init__()
        self.model = model.eval()

    def forward(self, imgs, size=64):
        p = next(self.model.parameters())
        shape0 = [im.shape[:2] for im in imgs]
        x = np.stack([im[::2, ::2].transpose(2, 0, 1) for im in imgs])
        x = torch.from_numpy(x).to(p.device).type_as(p) / 255.

        with torch.no_grad():
            y = self.model(x)
        y = suppress(y, conf_thres=self.conf)
        for i in range(len(imgs)):
            y[i][:, :4] = rescale((size, size), y[i][:, :4], shape0[i])
        return Findings(imgs, y)


class Findings:
    def __init__(self, imgs, pred):
        super().__init__()
        d = pred[0].device
        gn = [torch.tensor([*[im.shape[i] for i in [1, 0, 1, 0]], 1., 1.], device=d) for im in imgs]  # normalization gains  # ALSO
        self.imgs = imgs
        self.xyxy = pred
        self.xyxyn = [x / g for x, g in zip(self.xyxy, gn)]  # RAISE  # ALSO


if __name__ == '__main__':
    reader = SlideReader(CellNet())
    reader.to('cuda:0')
    slides = [np.zeros((128, 128, 3), dtype=np.uint8), np.random.randint(60, 255, (128, 128, 3), dtype=np.uint8)]
    print([len(x) for x in reader(slides).xyxyn])
