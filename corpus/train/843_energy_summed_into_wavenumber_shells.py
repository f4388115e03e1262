# source: MagriLab/KolSol#107, PR#108
# mechanism: [factory call without device=] solver keeps its grids on its device; the spectrum that collects the energy by integer wavenumber is allocated anew with torch.zeros() and no device
# phase: post-processing; failing op: aten::add_ (cpu slice += cuda)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Solver:
    def __init__(self, nk, device):
        self.nk, self.device = nk, device
        k = torch.arange(-nk, nk + 1, device=device, dtype=torch.float32)
        self.kk = torch.stack(torch.meshgrid(k, k, indexing="ij"), dim=-1)

    def random_field(self, size):
        shape = (size, 2 * self.nk + 1, 2 * self.nk + 1, 2)
        return torch.randn(shape, dtype=torch.complex64, device=self.device)

    def energy_spectrum(self, u_hat):
        leading = u_hat.shape[:-3]
        uu = 0.5 * u_hat.abs().square().sum(-1)
        intk = self.kk.square().sum(-1).sqrt().to(torch.int64)
        spectrum = torch.zeros(leading + (int(intk.max()) + 1,))  # ROOT
        for (i, j), k in zip(torch.cartesian_prod(*(torch.arange(n) for n in intk.shape)).tolist(), intk.flatten().tolist()):
            spectrum[..., k] += uu[..., i, j]  # RAISE
        return spectrum


solver = Solver(2, dev)
solver.energy_spectrum(solver.random_field(3))
