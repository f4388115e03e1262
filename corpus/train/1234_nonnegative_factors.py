# source: tensorly/tensorly#200
# mechanism: the random start of a decomposition makes its factors without the context (dtype, device) of the tensor, the other start derives them from it
# expect: raises
from typing import Dict, List, Optional, Tuple

import torch

Factors = List[torch.Tensor]


def context(tensor: torch.Tensor) -> Dict[str, object]:
    return {"dtype": tensor.dtype, "device": tensor.device}


def check_random_state(seed: Optional[int]) -> torch.Generator:
    generator = torch.Generator()
    generator.manual_seed(0 if seed is None else seed)
    return generator


def unfold(tensor: torch.Tensor, mode: int) -> torch.Tensor:
    return tensor.movedim(mode, 0).reshape(tensor.shape[mode], -1)


def khatri_rao(factors: Factors) -> torch.Tensor:
    out = factors[0]
    for factor in factors[1:]:
        out = (out[:, None] * factor[None]).reshape(-1, out.shape[1])
    return out


def cp_to_tensor(weights: torch.Tensor, factors: Factors) -> torch.Tensor:
    full = (factors[0] * weights) @ khatri_rao(factors[1:]).T
    return full.reshape([f.shape[0] for f in factors])


def random_cp(shape: Tuple[int, ...], rank: int, generator: torch.Generator, **ctx) -> Factors:
    return [torch.rand(s, rank, generator=generator).to(**ctx) for s in shape]


def initialize_factors(tensor: torch.Tensor, rank: int, init: str, seed: Optional[int]) -> Factors:
    if init == "random":
        return random_cp(tuple(tensor.shape), rank, check_random_state(seed))  # ROOT
    if init == "svd":
        factors = []
        for mode in range(tensor.ndim):
            u = torch.linalg.svd(unfold(tensor, mode), full_matrices=False).U[:, :rank].abs()
            if u.shape[1] < rank:
                u = torch.cat([u, torch.rand(u.shape[0], rank - u.shape[1], **context(tensor))], dim=1)
            factors.append(u)
        return factors
    raise ValueError(f"unknown init {init!r}")


def non_negative_parafac(
    tensor: torch.Tensor, rank: int, n_iter_max: int = 10, init: str = "svd", tol: float = 1e-6, seed: Optional[int] = None
) -> Tuple[torch.Tensor, Factors, List[float]]:
    factors = initialize_factors(tensor, rank, init, seed)  # ALSO
    weights = torch.ones(rank, **context(tensor))
    norm = tensor.norm()
    eps = torch.finfo(tensor.dtype).eps
    errors: List[float] = []
    for iteration in range(n_iter_max):
        for mode in range(tensor.ndim):
            others = [f for i, f in enumerate(factors) if i != mode]
            gram = torch.ones(rank, rank, **context(tensor))
            for other in others:
                gram = gram * (other.T @ other)  # RAISE
            numerator = (unfold(tensor, mode) @ khatri_rao(others)).clamp_min(eps)
            denominator = (factors[mode] @ gram).clamp_min(eps)
            factors[mode] = factors[mode] * numerator / denominator
        errors.append(((tensor - cp_to_tensor(weights, factors)).norm() / norm).item())
        if iteration and abs(errors[-2] - errors[-1]) < tol:
            break
    scales = torch.stack([f.norm(dim=0) for f in factors])
    factors = [f / s.clamp_min(eps) for f, s in zip(factors, scales)]
    return scales.prod(0), factors, errors


def make_ratings(device: torch.device) -> torch.Tensor:
    gen = torch.Generator().manual_seed(9)
    true = random_cp((8, 7, 6), 2, gen, dtype=torch.float32, device=device)
    return cp_to_tensor(torch.ones(2, device=device), true)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    ratings = make_ratings(device)
    for init in ("svd", "random"):
        weights, factors, errors = non_negative_parafac(ratings, rank=3, init=init, seed=4)
        print(init, round(errors[-1], 4), [tuple(f.shape) for f in factors], weights.sum().item())


if __name__ == "__main__":
    main()
