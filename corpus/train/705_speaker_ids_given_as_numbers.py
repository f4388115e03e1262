# source: huggingface/transformers#26055
# mechanism: a speaker id given as a Python int is turned into a tensor inside forward without a device; a tensor given by the caller would have worked
# phase: speech synthesis, forward; failing op: aten::embedding (index_select)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DurationPredictor(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cond, self.proj = nn.Conv1d(dim, dim, 1), nn.Conv1d(dim, 1, 1)

    def forward(self, hidden, speaker):
        if speaker is not None:
            hidden = hidden + self.cond(speaker)
        return self.proj(hidden)

class VitsModel(nn.Module):
    def __init__(self, vocab=20, speakers=4, dim=8):
        super().__init__()
        self.num_speakers = speakers
        self.text_encoder, self.embed_speaker = nn.Embedding(vocab, dim), nn.Embedding(speakers, dim)
        self.duration_predictor = DurationPredictor(dim)

    def forward(self, input_ids, speaker_id=None):
        speaker = None
        if self.num_speakers > 1 and speaker_id is not None:
            if isinstance(speaker_id, int):
                speaker_id = torch.full(size=(1,), fill_value=speaker_id)  # ROOT
            speaker = self.embed_speaker(speaker_id).unsqueeze(-1)  # RAISE  # ALSO
        hidden = self.text_encoder(input_ids).transpose(1, 2)
        return self.duration_predictor(hidden, speaker).exp().ceil()

model = VitsModel().to(dev).eval()
inputs = {"input_ids": torch.randint(0, 20, (1, 6), device=dev)}
with torch.no_grad():
    model(**inputs, speaker_id=torch.tensor([1], device=dev))
    model(**inputs, speaker_id=3)
