# source: zjunlp/EasyEdit#149
# mechanism: the orthogonality penalty of AdaLoRA is summed over the adapters of all layers; with the layers on two GPUs the terms lie on both.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class SVDLinear(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        device = base.weight.device
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features, device=device) * 0.1)
        self.lora_E = nn.Parameter(torch.zeros(rank, 1, device=device))
        self.lora_B = nn.Parameter(torch.randn(base.out_features, rank, device=device) * 0.1)

    def forward(self, x):
        return self.base(x) + x @ (self.lora_A * self.lora_E).t() @ self.lora_B.t()


class ParallelLM(nn.Module):
    def __init__(self, devices, vocab=24, dim=12, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).to(devices[0])
        self.layers = nn.ModuleList()
        for index in range(layers):
            self.layers.append(nn.Linear(dim, dim).to(devices[index * len(devices) // layers]))
        self.head = nn.Linear(dim, vocab).to(devices[-1])

    def forward(self, input_ids, labels=None):
        x = self.embed(input_ids)
        for layer in self.layers:
            target = next(layer.parameters()).device
            x = torch.tanh(layer(x.to(target)))
        logits = self.head(x.to(self.head.weight.device))
        if labels is None:
            return None, logits
        labels = labels.to(logits.device)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()), logits


class AdaLoraModel(nn.Module):
    def __init__(self, model, rank=4, orth_reg_weight=0.5):
        super().__init__()
        self.model = model
        self.orth_reg_weight = orth_reg_weight
        model.requires_grad_(False)
        for index, layer in enumerate(model.layers):
            model.layers[index] = SVDLinear(layer, rank)

    def orthogonal_penalty(self):
        penalty, count = 0, 0
        for name, param in self.model.named_parameters():
            if not name.endswith(("lora_A", "lora_B")):
                continue
            gram = param @ param.t() if name.endswith("lora_A") else param.t() @ param  # ALSO
            eye = torch.eye(gram.shape[0], device=gram.device)
            penalty = penalty + torch.linalg.matrix_norm(gram - eye)  # RAISE # ROOT
            count += 1
        return penalty / max(count, 1)

    def forward(self, input_ids, labels=None):
        loss, logits = self.model(input_ids, labels)
        if loss is not None and self.orth_reg_weight > 0:
            loss = loss + self.orth_reg_weight * self.orthogonal_penalty()
        return loss, logits


class Editor:
    def __init__(self, model, lr=5e-2, steps=3):
        self.model = AdaLoraModel(model)
        self.steps = steps
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trainable, lr=lr)

    def edit(self, prompt, target):
        ids = torch.tensor([prompt + target], device="cuda:0")
        losses = []
        for _ in range(self.steps):
            loss, _ = self.model(ids, labels=ids)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses


def main():
    torch.manual_seed(0)
    editor = Editor(ParallelLM(["cuda:0", "cuda:1"]))
    print(editor.edit([4, 9, 2], [17]))


if __name__ == "__main__":
    main()
