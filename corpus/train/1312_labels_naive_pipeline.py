# source: huggingface/transformers#22535
# mechanism: in a model spread naively over two GPUs the loss compares the logits of the last one with labels that came in with the inputs of the first
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, shared, dim):
        super().__init__()
        self.embed = shared
        self.proj = nn.Linear(dim, dim)

    def forward(self, input_ids):
        return torch.relu(self.proj(self.embed(input_ids)))


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cross = nn.Linear(dim, dim)

    def forward(self, decoder_ids, memory):
        device = self.cross.weight.device
        hidden = self.embed(decoder_ids.to(device))
        return hidden + self.cross(memory.to(device).mean(1, keepdim=True))


class Seq2SeqLM(nn.Module):
    def __init__(self, vocab=40, dim=16, pad_id=0):
        super().__init__()
        self.vocab, self.pad_id = vocab, pad_id
        self.encoder = Encoder(nn.Embedding(vocab, dim), dim)
        self.decoder = Decoder(vocab, dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def shift_right(self, labels):
        shifted = labels.new_zeros(labels.shape)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == -100, self.pad_id)

    def forward(self, input_ids, labels=None, decoder_input_ids=None):
        memory = self.encoder(input_ids)
        if decoder_input_ids is None:
            decoder_input_ids = self.shift_right(labels)
        hidden = self.decoder(decoder_input_ids, memory)
        lm_logits = self.lm_head(hidden)
        loss = None
        if labels is not None:
            criterion = nn.CrossEntropyLoss(ignore_index=-100)
            loss = criterion(lm_logits.view(-1, self.vocab), labels.view(-1))  # RAISE # ROOT
        return {"loss": loss, "logits": lm_logits}


def from_pretrained(device_map):
    model = Seq2SeqLM()
    for name, device in device_map.items():
        getattr(model, name).to(device)
    model.device_map = device_map
    return model


def collate(rows, device):
    width = max(len(r["labels"]) for r in rows)
    labels = torch.tensor([r["labels"] + [-100] * (width - len(r["labels"])) for r in rows])
    input_ids = torch.tensor([r["input_ids"] for r in rows])
    return {"input_ids": input_ids.to(device), "labels": labels.to(device)}


class Trainer:
    def __init__(self, model, rows, lr=1e-2):
        self.model, self.rows = model, rows
        self.device = model.encoder.proj.weight.device
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def train(self, epochs):
        for _ in range(epochs):
            outputs = self.model(**collate(self.rows, self.device))
            self.optimizer.zero_grad()
            outputs["loss"].backward()
            self.optimizer.step()
        return outputs["loss"].item()

    @torch.no_grad()
    def predict(self, input_ids, steps=3):
        decoded = torch.zeros(input_ids.size(0), 1, dtype=torch.long, device=self.device)
        for _ in range(steps):
            logits = self.model(input_ids.to(self.device), decoder_input_ids=decoded)["logits"]
            decoded = torch.cat([decoded, logits[:, -1:].argmax(-1).to(self.device)], dim=1)
        return decoded.tolist()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = from_pretrained({"encoder": "cuda:0", "decoder": "cuda:1", "lm_head": "cuda:1"})
    data = [{"input_ids": [1, 2, 3], "labels": [4, 5]}, {"input_ids": [6, 7, 8], "labels": [9, 10, 11]}]
    trainer = Trainer(model, data)
    print(trainer.predict(torch.tensor([[1, 2, 3]])))
    print(trainer.train(2))
