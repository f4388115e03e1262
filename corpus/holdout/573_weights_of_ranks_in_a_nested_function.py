# source: own
# mechanism: an evaluation on the host makes the weights of its ranks on an accelerator; the function defined inside meets them
# phase: evaluation; failing op: aten::mul
# expect: raises
import torch


class Ranking:
    """Judges the order of documents; all of it stays on the host."""

    def __init__(self, grades):
        self.grades = grades

    def gains(self, order):
        return self.grades.gather(1, order).float().exp2() - 1

    def judge(self, scores):
        fade, floor = torch.logspace(0, -2, scores.shape[1], device="cuda"), 1e-6  # ROOT

        def total(gains):
            return (gains * fade).sum(1)  # RAISE

        ideal = self.gains(self.grades.argsort(1, descending=True))
        found = self.gains(scores.argsort(1, descending=True))
        return (total(found) / total(ideal).clamp(min=floor)).mean()


ranking = Ranking(torch.tensor([[3, 0, 1], [0, 2, 2]]))
print(ranking.judge(torch.tensor([[0.2, 0.9, 0.1], [0.3, 0.1, 0.8]])))
