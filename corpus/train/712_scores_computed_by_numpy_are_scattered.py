# source: RUCAIBox/RecBole PR#1997
# mechanism: [NumPy round trip] item similarity model scores pairs in NumPy and returns a CPU tensor; the evaluator scatters the scores into its matrix on the device
# phase: evaluation with sampled negatives; failing op: aten::index_put_
# expect: raises
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ItemSimilarity(nn.Module):
    def __init__(self, matrix, device):
        super().__init__()
        self.device = device
        self.fake_loss = nn.Parameter(torch.zeros(1))
        self.interaction_matrix = matrix
        self.item_similarity = matrix.T @ matrix / len(matrix)

    def calculate_loss(self, interaction):
        return self.fake_loss.sum()

    def predict(self, interaction):
        user = interaction["user_id"].cpu().numpy()
        item = interaction["item_id"].cpu().numpy()
        r = torch.from_numpy((self.interaction_matrix[user] * self.item_similarity[:, item].T).sum(axis=1))  # ROOT
        return r  # ALSO

class Evaluator:
    def __init__(self, model, item_num, device):
        self.model, self.item_num, self.device = model.to(device), item_num, device

    @torch.no_grad()
    def neg_sample_batch(self, interaction, row_idx):
        interaction = {key: value.to(self.device) for key, value in interaction.items()}
        origin_scores = self.model.predict(interaction)  # ALSO
        scores = torch.full((int(row_idx[-1]) + 1, self.item_num), -np.inf, device=self.device)
        scores[row_idx, interaction["item_id"]] = origin_scores  # RAISE  # ALSO
        return scores.topk(2, dim=1).indices

matrix = (np.random.default_rng(0).random((5, 7)) > 0.5).astype(np.float32)
evaluator = Evaluator(ItemSimilarity(matrix, dev), 7, dev)
rows = torch.arange(2).repeat_interleave(3)
evaluator.neg_sample_batch({"user_id": rows + 1, "item_id": torch.tensor([0, 3, 5, 1, 2, 6])}, rows)
