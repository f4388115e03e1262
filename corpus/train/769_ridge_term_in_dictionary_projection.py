# source: AstraZeneca/chemicalx#96
# mechanism: [factory call without device=] identity of the ridge term is made with torch.eye() and no device
# phase: forward; failing op: aten::add
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DictionaryModel(nn.Module):
    def __init__(self, drugs, hidden, ridge=1e-3):
        super().__init__()
        self.ridge = ridge
        self.encoder = nn.Linear(drugs, hidden)
        self.decoder = nn.Linear(hidden, drugs)

    def penalty(self, n):
        return self.ridge * torch.eye(n)  # ROOT

    def project(self, atoms, z):
        gram = atoms @ atoms.T
        inv = torch.linalg.inv(gram + self.penalty(gram.shape[0]))  # RAISE  # ALSO
        return z @ atoms.T @ inv

    def forward(self, x, frequent):
        z, atoms = self.encoder(x), self.encoder(frequent)
        return self.decoder(z), self.project(atoms, z)

DictionaryModel(6, 4).to(dev)(torch.rand(3, 6, device=dev), torch.rand(2, 6, device=dev))
