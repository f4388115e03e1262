# source: asahi417/lmppl PR#12
# mechanism: [data not moved] tokenizer output is copied to the device only for the call of the model; the labels are cut from the tokenizer output itself
# phase: evaluation, loss; failing op: aten::nll_loss (argument target)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Tokenizer:
    pad_token_id = 0

    def __call__(self, texts):
        rows = [[1 + ord(c) % 30 for c in t] for t in texts]
        n = max(map(len, rows))
        ids = torch.tensor([r + [self.pad_token_id] * (n - len(r)) for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != self.pad_token_id).long()}

class CausalLM(nn.Module):
    def __init__(self, vocab=31, dim=8):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def forward(self, input_ids, attention_mask):
        h = self.embed(input_ids) * attention_mask.unsqueeze(-1)
        return {"logits": self.head(h.cumsum(1))}

class LM:
    def __init__(self, model, tokenizer, device):
        self.model, self.tokenizer, self.device = model.to(device).eval(), tokenizer, device
        self.loss_fct = nn.CrossEntropyLoss(reduction="none", ignore_index=-100)

    def get_perplexity(self, texts, batch_size=2):
        losses = []
        with torch.no_grad():
            for s in range(0, len(texts), batch_size):
                model_inputs = self.tokenizer(texts[s:s + batch_size])  # ROOT
                output = self.model(**{k: v.to(self.device) for k, v in model_inputs.items()})
                label = model_inputs["input_ids"].clone()  # ALSO
                label[label == self.tokenizer.pad_token_id] = -100
                shift_logits, shift_label = output["logits"][:, :-1].contiguous(), label[:, 1:].contiguous()  # ALSO
                loss = self.loss_fct(shift_logits.view(-1, shift_logits.shape[-1]), shift_label.view(-1))  # RAISE
                losses.append(loss.view(len(output["logits"]), -1).sum(-1) / (shift_label != -100).sum(-1))
        return torch.cat(losses).exp().tolist()

LM(CausalLM(), Tokenizer(), dev).get_perplexity(["sentence one", "two", "the third"])
