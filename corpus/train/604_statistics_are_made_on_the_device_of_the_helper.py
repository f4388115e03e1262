# source: verl-project/verl#4962 (pass the scores' device to group_mean_std; scores on the driver's CPU, means on cuda:0)
# mechanism: a driver works on the host; a helper which is told no device answers from the accelerator
# phase: normalisation; aten::sub
# expect: raises
import torch


def default_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def column_mean(table, device=None):
    device = device if device is not None else default_device()  # ALSO
    weights = torch.full((table.shape[0],), 1.0 / table.shape[0], device=device)
    return weights @ table.to(device)


class Report:
    def __init__(self, rows):
        self.rows = rows

    def centred(self):
        rows = torch.tensor(self.rows)
        mean = column_mean(rows)  # ROOT
        return rows - mean  # RAISE


centred = Report([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]]).centred()
