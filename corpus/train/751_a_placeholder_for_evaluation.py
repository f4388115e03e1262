# source: WenjieDu/PyPOTS#625 (forecasting Transformer)
# mechanism: [factory call without device=] in training the decoder gets the target window of the batch; in evaluation it gets zeros and a mask made on the CPU, so only the first evaluation fails
# phase: validation forward, after training steps that work; failing op: aten::linear / addmm
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class MaskedEmbedding(nn.Module):
    def __init__(self, features, d_model):
        super().__init__()
        self.proj = nn.Linear(2 * features, d_model)

    def forward(self, X, missing_mask):
        return self.proj(torch.cat([X, missing_mask], dim=-1))  # RAISE


class Forecaster(nn.Module):
    def __init__(self, features, pred_steps, d_model=8):
        super().__init__()
        self.features, self.pred_steps = features, pred_steps
        self.enc_embed, self.dec_embed = MaskedEmbedding(features, d_model), MaskedEmbedding(features, d_model)
        self.attn = nn.MultiheadAttention(d_model, 2, batch_first=True)
        self.out = nn.Linear(d_model, features)

    def forward(self, inputs):
        X, mask = inputs["X"], inputs["missing_mask"]
        if self.training:
            X_pred, X_pred_mask = inputs["X_pred"], inputs["X_pred_missing_mask"]
        else:
            shape = (X.shape[0], self.pred_steps, self.features)
            X_pred, X_pred_mask = torch.zeros(shape), torch.ones(shape)  # ROOT
        memory = self.enc_embed(X, mask)
        query = self.dec_embed(X_pred, X_pred_mask)
        return self.out(self.attn(query, memory, memory)[0])

batch = {k: torch.ones(4, n, 3, device=dev) for k, n in (("X", 6), ("missing_mask", 6), ("X_pred", 2), ("X_pred_missing_mask", 2))}
model = Forecaster(3, 2).to(dev)
(model(batch) - batch["X_pred"]).pow(2).mean().backward()
model.eval()
with torch.no_grad():
    forecast = model(batch)
