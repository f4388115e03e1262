# source: Novartis/torchsurv#145, PR#146
# mechanism: [factory call without device=] estimator is fitted to CUDA events and times, but hands out its predictions in a tensor made with torch.zeros() and no device; the caller puts them into CUDA weights by mask
# phase: loss weighting; failing op: aten::index_put_ (cuda weights, cpu values)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class KaplanMeier:
    def __call__(self, event, time):
        order = time.argsort()
        self.time = time[order]
        at_risk = torch.arange(len(time), 0, -1, device=time.device)
        self.survival = (1 - event[order].float() / at_risk).cumprod(0)

    def predict(self, new_time):
        pred = torch.zeros(new_time.shape[0])  # ROOT
        for i, t in enumerate(new_time.tolist()):
            pred[i] = self.survival[self.time <= t][-1]
        return pred  # ALSO


def get_ipcw(event, time):
    km = KaplanMeier()
    km(~event, time)
    weights = torch.zeros_like(time)
    weights[event] = 1.0 / km.predict(time[event]).clamp_min(1e-3)  # RAISE
    return weights


event = torch.tensor([True, False, True, True, False, True], device=dev)
time = torch.tensor([3.0, 1.0, 2.0, 5.0, 6.0, 4.0], device=dev)
get_ipcw(event, time)
