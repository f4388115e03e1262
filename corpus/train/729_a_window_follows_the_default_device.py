# source: huggingface/transformers PR#35866
# mechanism: [default device] script sets the default device to CUDA, so a factory call inside the extractor lands there, while the waveform comes from NumPy and stays on the CPU
# phase: feature extraction; failing op: aten::stft ('stft input and window must be on the same device')
# expect: raises
import numpy as np
import torch

dev = torch.device("cuda", 0)


class LogMelExtractor:
    def __init__(self, n_fft=64, hop=16, n_mels=8):
        self.n_fft, self.hop = n_fft, hop
        self.mel_filters = np.random.rand(n_mels, n_fft // 2 + 1).astype(np.float32)

    def fbank(self, waveform, device="cpu"):
        waveform = torch.from_numpy(waveform).to(device, torch.float32)
        window = torch.hann_window(self.n_fft)  # ROOT
        if device != "cpu":  # ALSO
            window = window.to(device)
        spec = torch.stft(waveform, self.n_fft, self.hop, window=window, return_complex=True)  # RAISE
        mags = spec[..., :-1].abs() ** 2
        mel = torch.from_numpy(self.mel_filters).to(device) @ mags
        return mel.clamp(min=1e-10).log10().cpu().numpy()

    def __call__(self, raw, device="cpu"):
        longest = max(len(r) for r in raw)
        padded = np.stack([np.pad(r, (0, longest - len(r))) for r in raw])
        return {"input_features": self.fbank(padded, device)}

torch.set_default_device(dev)
encoder = torch.nn.Conv1d(8, 16, 3)
extractor = LogMelExtractor()
clips = [np.random.randn(n) for n in (400, 640)]
features = extractor(clips)["input_features"]
hidden = encoder(torch.tensor(features))
