# source: ray-project/ray#22659, PR#27304, PR#31085
# mechanism: [module list not registered] sub-networks are kept in dicts by input number; those of the image inputs are also given to add_module, those of the flat inputs are not
# phase: forward; failing op: aten::linear / addmm (cuda input, cpu weight)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ComplexInput(nn.Module):
    def __init__(self, spaces, out_size):
        super().__init__()
        self.cnns, self.flatten = {}, {}
        width = 0
        for i, shape in enumerate(spaces):
            if len(shape) == 3:
                self.cnns[i] = nn.Sequential(nn.Conv2d(shape[0], 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
                self.add_module("cnn_{}".format(i), self.cnns[i])
                width += 4
            else:
                self.flatten[i] = nn.Sequential(nn.Linear(shape[0], 8), nn.Tanh())  # ROOT
                width += 8
        self.post = nn.Linear(width, out_size)

    def forward(self, obs):
        outs = []
        for i, o in enumerate(obs):
            net = self.cnns[i] if i in self.cnns else self.flatten[i]
            outs.append(net(o))  # RAISE
        return self.post(torch.cat(outs, dim=1))


policy = ComplexInput([(3, 16, 16), (5,)], 2).to(dev)
policy([torch.rand(2, 3, 16, 16, device=dev), torch.rand(2, 5, device=dev)])
