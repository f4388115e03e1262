# source: RUCAIBox/RecBole#1984
# mechanism: a model without gradients that computes on the host returns its scores from there to an evaluator on the device
# expect: raises
from dataclasses import dataclass
from typing import Dict, List, Tuple

import torch
from torch import nn


@dataclass
class Config:
    device: torch.device
    topk: int = 3
    eval_batch_size: int = 4


class InteractionData:
    def __init__(self, n_users: int, n_items: int, density: float = 0.3):
        gen = torch.Generator().manual_seed(6)
        matrix = (torch.rand(n_users, n_items, generator=gen) < density).float()
        self.test = torch.zeros_like(matrix)
        for user in range(n_users):
            liked = matrix[user].nonzero().flatten()
            if len(liked) > 1:
                self.test[user, liked[-1]] = 1
        self.train = matrix - self.test
        self.n_users, self.n_items = n_users, n_items


class GeneralRecommender(nn.Module):
    def __init__(self, config: Config, data: InteractionData):
        super().__init__()
        self.device = config.device
        self.n_users, self.n_items = data.n_users, data.n_items

    def full_sort_predict(self, interaction: Dict[str, torch.Tensor]) -> torch.Tensor:
        raise NotImplementedError


class BPR(GeneralRecommender):
    def __init__(self, config: Config, data: InteractionData, dim: int = 8):
        super().__init__(config, data)
        self.user_embedding = nn.Embedding(data.n_users, dim)
        self.item_embedding = nn.Embedding(data.n_items, dim)

    def full_sort_predict(self, interaction: Dict[str, torch.Tensor]) -> torch.Tensor:
        return self.user_embedding(interaction["user_id"]) @ self.item_embedding.weight.T


class SLIMElastic(GeneralRecommender):
    def __init__(self, config: Config, data: InteractionData, l2: float = 2.0):
        super().__init__(config, data)
        self.interaction_matrix = data.train
        gram = data.train.T @ data.train + l2 * torch.eye(data.n_items)
        precision = torch.linalg.inv(gram)
        similarity = -precision / precision.diagonal()
        self.item_similarity = similarity.fill_diagonal_(0).clamp_min(0).to_sparse()
        self.fake_loss = nn.Parameter(torch.zeros(1))

    def full_sort_predict(self, interaction: Dict[str, torch.Tensor]) -> torch.Tensor:
        users = interaction["user_id"].cpu()
        rows = self.interaction_matrix[users]
        scores = torch.sparse.mm(self.item_similarity.t(), rows.T).T  # ALSO
        return scores  # ROOT


class Evaluator:
    def __init__(self, config: Config, data: InteractionData):
        self.config, self.data = config, data

    def _collect(self, model: GeneralRecommender, users: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        interaction = {"user_id": users.to(self.config.device)}
        scores = model.full_sort_predict(interaction).view(-1, self.data.n_items)  # ALSO
        history = self.data.train[users].to(self.config.device).bool()
        scores = scores.masked_fill(history, float("-inf"))  # RAISE
        positives = self.data.test[users].to(self.config.device)
        topk = scores.topk(self.config.topk, dim=-1).indices
        return positives.gather(1, topk), positives.sum(1)

    @torch.no_grad()
    def evaluate(self, model: GeneralRecommender) -> Dict[str, float]:
        model.eval()
        hits: List[torch.Tensor] = []
        recalls: List[torch.Tensor] = []
        for users in torch.arange(self.data.n_users).split(self.config.eval_batch_size):
            found, total = self._collect(model, users)
            hits.append((found.sum(1) > 0).float())
            recalls.append(found.sum(1) / total.clamp_min(1))
        k = self.config.topk
        return {f"hit@{k}": torch.cat(hits).mean().item(), f"recall@{k}": torch.cat(recalls).mean().item()}


def main() -> None:
    config = Config(device=torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))
    data = InteractionData(14, 18)
    evaluator = Evaluator(config, data)
    for model_class in (BPR, SLIMElastic):
        model = model_class(config, data).to(config.device)
        print(model_class.__name__, evaluator.evaluate(model))


if __name__ == "__main__":
    main()
