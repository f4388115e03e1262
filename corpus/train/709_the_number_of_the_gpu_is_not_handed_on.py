# source: m-bain/whisperX#785, PR#835
# mechanism: the loader takes device='cuda' and device_index=1; the recogniser honours both, the voice activity model is sent to the bare 'cuda', that is the current GPU 0
# phase: transcription, segmentation; failing op: aten::instance_norm / batch_norm (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

class VoiceActivity(nn.Module):
    def __init__(self):
        super().__init__()
        self.wav_norm = nn.InstanceNorm1d(1, affine=True)
        self.conv, self.score = nn.Conv1d(1, 4, 16, stride=8), nn.Conv1d(4, 1, 1)
    def forward(self, wav):
        x = self.wav_norm(wav)  # RAISE
        return self.score(self.conv(x).relu()).sigmoid()

class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv1d(1, 6, 16, stride=8)
    def forward(self, wav):
        return self.encoder(wav).argmax(1)

def load_vad_model(device):
    return VoiceActivity().to(device).eval()

class TranscriptionPipeline:
    def __init__(self, model, vad, device):
        self.model, self.vad, self.device = model, vad, device
    @torch.no_grad()
    def transcribe(self, audio):
        wav = torch.from_numpy(audio).float().view(1, 1, -1).to(self.device)
        speech = (self.vad(wav) > 0.0).flatten().nonzero()
        start, end = int(speech[0]) * 8, int(speech[-1]) * 8 + 16
        return self.model(wav[..., start:end])

def load_model(device, device_index=0):
    place = torch.device(device, device_index)
    model = Recognizer().to(place).eval()
    vad = load_vad_model(torch.device(device))  # ROOT
    return TranscriptionPipeline(model, vad, place)

pipeline = load_model("cuda", device_index=1)
pipeline.transcribe(torch.randn(800).numpy())
