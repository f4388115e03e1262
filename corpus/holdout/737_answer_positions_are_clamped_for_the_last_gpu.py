# source: huggingface/transformers#31037, fix PR#31092 (OPTForQuestionAnswering with device_map="auto")
# mechanism: [model-parallel hook] the head, and so the logits, are on the last GPU; the answer positions stay on the first one
# phase: loss; failing op: aten::nll_loss_forward (argument target)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class OPTForQuestionAnswering(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))
        self.qa_outputs = nn.Linear(dim, 2)

    def forward(self, input_ids, start_positions=None, end_positions=None):
        hidden_states = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states).relu()
        logits = self.qa_outputs(hidden_states)
        start_logits, end_logits = (part.squeeze(-1) for part in logits.split(1, dim=-1))
        ignored_index = start_logits.size(1)
        targets = [p.clamp(0, ignored_index) for p in (start_positions, end_positions)]  # ROOT
        loss_fct = nn.CrossEntropyLoss(ignore_index=ignored_index)
        losses = [loss_fct(lg, t) for lg, t in zip((start_logits, end_logits), targets)]  # RAISE  # ALSO
        return sum(losses) / 2


def dispatch_model(model, device_map):
    for name, index in device_map.items():
        module = model.get_submodule(name).to(f"cuda:{index}")
        module.register_forward_pre_hook(lambda m, args, index=index: tuple(a.to(f"cuda:{index}") for a in args))
    return model


device_map = {"embed_tokens": 0, "layers.0": 0, "layers.1": 0, "layers.2": 1, "layers.3": 1, "qa_outputs": 1}
model = dispatch_model(OPTForQuestionAnswering(20, 8), device_map)
batch = {"input_ids": torch.randint(0, 20, (2, 6)), "start_positions": torch.tensor([1, 2]), "end_positions": torch.tensor([3, 9])}
model(**{k: v.to(dev) for k, v in batch.items()}).backward()
