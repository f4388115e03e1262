# source: open-mmlab/mmdetection#6374
# mechanism: the scale factor of an image's meta data becomes a tensor on the default device and divides boxes on the GPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


def paste_masks(masks, boxes, height, width):
    x0, y0, x1, y1 = boxes.split(1, dim=1)
    ys = torch.arange(height, device=masks.device).float() + 0.5
    xs = torch.arange(width, device=masks.device).float() + 0.5
    ys = (ys[None] - y0) / (y1 - y0).clamp(min=1e-3) * 2 - 1
    xs = (xs[None] - x0) / (x1 - x0).clamp(min=1e-3) * 2 - 1
    grid = torch.stack(
        [xs[:, None, :].expand(-1, height, width), ys[:, :, None].expand(-1, height, width)], dim=3
    )
    return F.grid_sample(masks, grid, align_corners=False)[:, 0]


class BBoxHead(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.fc_cls = nn.Linear(channels, classes)
        self.fc_reg = nn.Linear(channels, 4)

    def get_bboxes(self, features, meta, rescale):
        scores, labels = self.fc_cls(features).softmax(-1).max(-1)
        sizes = self.fc_reg(features).sigmoid() * 8
        bboxes = torch.cat([sizes[:, :2], sizes[:, :2] + sizes[:, 2:] + 1], dim=1)
        if rescale:
            bboxes = bboxes / bboxes.new_tensor(meta["scale_factor"])
        return torch.cat([bboxes, scores[:, None]], dim=1), labels


class FCNMaskHead(nn.Module):
    def __init__(self, channels, classes, size=4):
        super().__init__()
        self.size = size
        self.classes = classes
        self.fc = nn.Linear(channels, classes * size * size)

    def forward(self, features):
        return self.fc(features).view(-1, self.classes, self.size, self.size)

    def get_seg_masks(self, mask_pred, det_bboxes, det_labels, ori_shape, scale_factor, rescale):
        bboxes = det_bboxes[:, :4]
        masks = mask_pred.sigmoid()
        if isinstance(scale_factor, (list, tuple)):
            scale_factor = torch.tensor(scale_factor)  # ROOT
        img_h, img_w = ori_shape
        if not rescale:
            img_h = int(round(img_h * scale_factor[1].item()))
            img_w = int(round(img_w * scale_factor[0].item()))
        else:
            bboxes = bboxes / scale_factor  # RAISE # ALSO
        chosen = masks[torch.arange(len(masks), device=masks.device), det_labels][:, None]
        return paste_masks(chosen, bboxes, img_h, img_w) > 0.5


class TwoStageDetector(nn.Module):
    def __init__(self, channels=8, classes=3):
        super().__init__()
        self.backbone = nn.Conv2d(3, channels, 4, stride=4)
        self.bbox_head = BBoxHead(channels, classes)
        self.mask_head = FCNMaskHead(channels, classes)

    def simple_test(self, image, meta, rescale=False):
        features = self.backbone(image)[0].flatten(1).t()[:5]
        det_bboxes, det_labels = self.bbox_head.get_bboxes(features, meta, rescale=False)
        mask_pred = self.mask_head(features)
        segms = self.mask_head.get_seg_masks(
            mask_pred, det_bboxes, det_labels, meta["ori_shape"], meta["scale_factor"], rescale
        )
        return det_bboxes, det_labels, segms


class ResizePipeline:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, image):
        height, width = image.shape[1:]
        resized = F.interpolate(image[None], scale_factor=self.scale)
        w, h = resized.shape[3] / width, resized.shape[2] / height
        return resized, {"ori_shape": (height, width), "scale_factor": [w, h, w, h]}


def inference_detector(model, image, pipeline):
    device = next(model.parameters()).device
    data, meta = pipeline(image)
    with torch.no_grad():
        return model.simple_test(data.to(device), meta, rescale=True)


def main():
    torch.manual_seed(0)
    model = TwoStageDetector().to("cuda:0").eval()
    bboxes, labels, segms = inference_detector(model, torch.rand(3, 12, 12), ResizePipeline(2.0))
    print(tuple(bboxes.shape), labels.tolist(), segms.float().mean().item())


if __name__ == "__main__":
    main()
