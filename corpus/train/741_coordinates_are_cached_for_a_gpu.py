# source: facebookresearch/sam3 PR#188
# mechanism: [hard-coded device] coordinate cache filled in the constructor with device="cuda", model then built and run for the CPU
# phase: forward; failing op: aten::sub
# expect: raises
import torch
import torch.nn as nn

class TransformerDecoder(nn.Module):
    def __init__(self, d_model, num_queries, resolution=None, stride=None):
        super().__init__()
        self.query_embed = nn.Embedding(num_queries, d_model)
        self.reference_points = nn.Embedding(num_queries, 4)
        self.boxRPB_embed_y = nn.Linear(2, 2)
        self.cord_cache, self.stored_size = None, None
        if resolution is not None and stride is not None:
            feat_size = resolution // stride
            self.cord_cache = self._get_coords(feat_size, feat_size, device="cuda")  # ROOT
            self.stored_size = (feat_size, feat_size)

    @staticmethod
    def _get_coords(H, W, device):
        return torch.arange(H, device=device).float() / H, torch.arange(W, device=device).float() / W

    def _get_rpb_matrix(self, reference_boxes, feat_size):
        if self.stored_size != feat_size:  # ALSO
            self.cord_cache = self._get_coords(*feat_size, reference_boxes.device)
            self.stored_size = feat_size
        coords_h, coords_w = self.cord_cache  # ALSO
        deltas_y = coords_h.view(1, -1, 1) - reference_boxes.transpose(0, 1).reshape(-1, 1, 4)[:, :, 1:4:2]  # RAISE  # ALSO
        return self.boxRPB_embed_y(deltas_y)

    def forward(self, memory, feat_size):
        boxes = self.reference_points.weight.unsqueeze(1).repeat(1, memory.shape[0], 1).sigmoid()
        return self._get_rpb_matrix(boxes, feat_size)


def build_model(device="cuda", eval_mode=True):
    model = TransformerDecoder(8, 5, resolution=56, stride=14).to(device)
    return model.eval() if eval_mode else model


model = build_model(device="cpu")
with torch.no_grad():
    model(torch.randn(2, 16, 8), (4, 4))
