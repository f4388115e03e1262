# source: mkocabas/VIBE#15
# mechanism: network outputs are brought to the CPU one by one before the refined frames are written back; one of them is forgotten
# phase: video post-processing; failing op: aten::index_put_ (CUDA destination, CPU values)
# expect: raises
import torch
import torch.nn as nn

device = torch.device("cuda", 0)

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 3 + 6 + 15)

    def forward(self, feats):
        cam, pose, joints = self.head(self.gru(feats)[0]).split([3, 6, 15], -1)
        return {"cam": cam, "pose": pose, "joints3d": joints.unflatten(-1, (5, 3))}

class TemporalRefiner:
    iters = 3

    def __call__(self, pose, cam, joints3d, keypoints):
        joints = joints3d.clone()
        for _ in range(self.iters):
            joints[..., :2] -= 0.1 * (joints[..., :2] - keypoints)
        start, end = ((j[..., :2] - keypoints).square().mean((1, 2)) for j in (joints3d, joints))
        return (end < start).cpu(), pose.cpu(), cam.cpu(), joints.cpu()

def run_clip(model, clips, keypoints, refiner):
    pred_cam, pred_pose, pred_joints3d = [], [], []
    with torch.no_grad():
        for feats in clips:
            out = model(feats.unsqueeze(0).to(device))
            for preds, name in ((pred_cam, "cam"), (pred_pose, "pose"), (pred_joints3d, "joints3d")):
                preds.append(out[name][0])
    pred_cam, pred_pose = torch.cat(pred_cam), torch.cat(pred_pose)
    pred_joints3d = torch.cat(pred_joints3d)  # ROOT
    update, new_pose, new_cam, new_joints3d = refiner(pred_pose, pred_cam, pred_joints3d, keypoints.to(device))
    pred_cam, pred_pose = pred_cam.cpu(), pred_pose.cpu()  # ALSO
    pred_cam[update], pred_pose[update] = new_cam[update], new_pose[update]
    pred_joints3d[update] = new_joints3d[update]  # RAISE
    return {"cam": pred_cam.numpy(), "pose": pred_pose.numpy(), "joints3d": pred_joints3d.cpu().numpy()}

run_clip(Regressor().to(device), torch.randn(2, 4, 8), torch.randn(8, 5, 2), TemporalRefiner())
