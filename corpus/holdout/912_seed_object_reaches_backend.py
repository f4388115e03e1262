# source: PythonOT/POT#371 #389 ('easily fixed by changing gen = torch.Generator() to gen = torch.Generator(device=device)')
# mechanism: [generator device] a generator is accepted as seed and kept by the backend object, which draws its projections on the device of the data
# phase: sampling; failing op: aten::randn / normal_ ('Expected a 'cuda' device type for generator but found 'cpu'')
# expect: raises
# root: example script: gen = torch.Generator()
import torch

dev = torch.device('cuda', 0)


class Backend:
    def seed(self, seed):
        self.rng = seed

    def randn(self, *size, like):
        return torch.randn(size, generator=self.rng, device=like.device)  # RAISE  # ALSO

nx, x = Backend(), torch.randn(8, 2, device=dev)
gen = torch.Generator().manual_seed(42)  # ROOT
nx.seed(gen)
proj = x @ nx.randn(2, 20, like=x)
