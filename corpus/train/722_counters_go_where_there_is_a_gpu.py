# source: NVIDIA-NeMo/Speech PR#7444
# mechanism: decoder decides by torch.cuda.is_available() and not by its inputs; the model was put on the CPU on a machine with a GPU
# phase: speech synthesis; failing op: aten::mul (cuda x cpu)
# expect: raises
import torch
import torch.nn as nn

class Decoder(nn.Module):
    def __init__(self, enc_dim, n_mels, max_steps=20, gate_threshold=0.5):
        super().__init__()
        self.n_mels, self.max_steps, self.gate_threshold = n_mels, max_steps, gate_threshold
        self.cell = nn.GRUCell(enc_dim + n_mels, 16)
        self.mel, self.gate = nn.Linear(16, n_mels), nn.Linear(16, 1)

    def new_counters(self, n):
        counters = torch.tensor([[0], [1]], dtype=torch.int32).repeat(1, n)
        return counters.cuda() if torch.cuda.is_available() else counters  # ROOT

    def infer(self, memory):
        frame, hidden = memory.new_zeros(memory.size(0), self.n_mels), memory.new_zeros(memory.size(0), 16)
        (mel_lengths, not_finished), mels = self.new_counters(memory.size(0)), []  # ALSO
        while len(mels) < self.max_steps:
            hidden = self.cell(torch.cat([memory.mean(1), frame], -1), hidden)
            frame = self.mel(hidden)
            running = (self.gate(hidden).sigmoid() <= self.gate_threshold).to(torch.int32).squeeze(1)
            not_finished = not_finished * running  # RAISE
            mel_lengths = mel_lengths + not_finished
            mels.append(frame)
            if not not_finished.any():
                break
        return torch.stack(mels, 1), mel_lengths

class Tacotron(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.encoder, self.decoder = nn.GRU(8, 12, batch_first=True), Decoder(12, 10)

    @torch.no_grad()
    def generate_spectrogram(self, tokens):
        memory, _ = self.encoder(self.embed(tokens.to(self.embed.weight.device)))
        return self.decoder.infer(memory)

Tacotron().to("cpu").generate_spectrogram(torch.randint(0, 30, (2, 7)))
