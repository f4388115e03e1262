# source: meta-pytorch/botorch#872
# mechanism: the range is copied to the host for drawing; with limits given, that copy goes to a sampler beside limits on the GPU
# phase: initial candidates; aten::cat
# expect: raises
import torch


class Region:
    def __init__(self, rows, rests, extra_rows, extra_rests):
        self.rows = torch.cat([rows, extra_rows], dim=0)  # RAISE
        self.rests = torch.cat([rests, extra_rests], dim=0)

    def holds(self, points):
        return (points @ self.rows.T <= self.rests).all(dim=-1)


class BoxedRegion(Region):
    def __init__(self, limits, span):
        self.span = span
        eye = torch.eye(span.shape[-1], dtype=span.dtype, device=span.device)
        super().__init__(*limits, torch.cat([-eye, eye]), torch.cat([-span[0], span[1]]))  # ALSO

    def draw(self, count):
        low, high = self.span
        points = low + (high - low) * torch.rand(64 * count, len(low), dtype=low.dtype, device=low.device)
        return points[self.holds(points)][:count]


def points_within(count, span, limits):
    region = BoxedRegion(limits, span)  # ALSO
    return region.draw(count)


def first_candidates(span, count, limits=None):
    span_cpu = span.cpu()
    if limits is None:
        drawn = torch.quasirandom.SobolEngine(span.shape[-1]).draw(count).to(span.dtype)
        points = span_cpu[0] + (span_cpu[1] - span_cpu[0]) * drawn
    else:
        points = points_within(count, span_cpu, limits)  # ROOT
    return points.to(span.device)


def search(gain, span, limits=None, count=8):
    points = first_candidates(span, count, limits)
    return points[gain(points).argmax()]


device = torch.device("cuda")
span = torch.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0]], dtype=torch.double, device=device)
budget = torch.ones(1, 3, dtype=torch.double, device=device), torch.full((1,), 5.0, dtype=torch.double, device=device)
print(search(lambda x: x.sin().sum(-1), span))
print(search(lambda x: x.sin().sum(-1), span, limits=budget))
