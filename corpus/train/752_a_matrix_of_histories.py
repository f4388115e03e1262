# source: RUCAIBox/RecBole PR#1749
# mechanism: [plain attribute tensor] mixin of the recommender keeps the users' histories, made by the dataset from host data, as plain attributes; CUDA user ids index them
# phase: training loss; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import numpy as np
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Interactions:
    def __init__(self, users, items, pairs):
        self.n_users, self.n_items, self.pairs = users, items, pairs

    def history_item_matrix(self):
        rows = [[i for v, i in self.pairs if v == u] for u in range(self.n_users)]
        ids = np.array([r + [0] * (self.n_items - len(r)) for r in rows])
        return torch.from_numpy(ids), torch.from_numpy((ids > 0).astype(np.float32))

class AutoEncoderMixin:
    def build_history_items(self, dataset):
        self.history_item_id, self.history_item_value = dataset.history_item_matrix()  # ROOT

    def get_rating_matrix(self, user):
        col = self.history_item_id[user].flatten()  # RAISE
        row = torch.arange(user.shape[0], device=col.device).repeat_interleave(self.history_item_id.shape[1])
        rating = torch.zeros(user.shape[0], self.n_items, device=col.device)
        return rating.index_put_((row, col), self.history_item_value[user].flatten())

class MultiDAE(nn.Module, AutoEncoderMixin):
    def __init__(self, dataset, device):
        super().__init__()
        self.device, self.n_items = device, dataset.n_items
        self.build_history_items(dataset)
        self.net = nn.Sequential(nn.Linear(self.n_items, 4), nn.Tanh(), nn.Linear(4, self.n_items))

    def calculate_loss(self, interaction):
        rating = self.get_rating_matrix(interaction["user_id"])
        return -(self.net(rating).log_softmax(1) * rating).sum(1).mean()

dataset = Interactions(3, 6, [(0, 1), (0, 4), (1, 2), (2, 5), (2, 3)])
model = MultiDAE(dataset, dev).to(dev)
model.calculate_loss({"user_id": torch.tensor([0, 2], device=dev)}).backward()
