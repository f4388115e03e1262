# source: idiap/coqui-ai-TTS PR#378 (coqui-ai/TTS discussion 4151)
# mechanism: [data not moved] speaker ids are made from names after the batch has been moved; the embedding layer gets CPU indices
# phase: forward; failing op: aten::embedding / index_select
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class ForwardTTS(nn.Module):
    def __init__(self, speakers, chars=20, hidden=8):
        super().__init__()
        self.name_to_id = {name: i for i, name in enumerate(speakers)}
        self.emb = nn.Embedding(chars, hidden)
        self.emb_g = nn.Embedding(len(speakers), hidden)
        self.encoder = nn.Conv1d(hidden, hidden, 3, padding=1)
        self.duration = nn.Conv1d(hidden, 1, 1)

    def format_batch(self, batch):
        batch["speaker_ids"] = torch.LongTensor([self.name_to_id[n] for n in batch["speaker_names"]])  # ROOT
        return batch

    def forward_encoder(self, x, x_mask, g=None):
        if g is not None:
            g = self.emb_g(g).unsqueeze(-1)  # RAISE  # ALSO
        h = self.emb(x).transpose(1, 2)
        return self.encoder(h if g is None else h + g) * x_mask

    def forward(self, batch):
        x = batch["text_input"]
        mask = (torch.arange(x.size(1), device=x.device) < batch["text_lengths"][:, None]).unsqueeze(1).float()
        o_en = self.forward_encoder(x, mask, batch.get("speaker_ids"))
        return (self.duration(o_en) * mask).squeeze(1)

def to_device(batch, device):
    return {k: v.to(device, non_blocking=True) if torch.is_tensor(v) else v for k, v in batch.items()}

model = ForwardTTS(["p225", "p226", "p227"]).to(dev)
batch = {"text_input": torch.randint(0, 20, (2, 6)), "text_lengths": torch.tensor([6, 4]),
         "durations": torch.randint(0, 5, (2, 6)), "speaker_names": ["p226", "p225"]}
batch = model.format_batch(to_device(batch, dev))  # ALSO
loss = nn.functional.mse_loss(model(batch), batch["durations"].float().log1p())
loss.backward()
