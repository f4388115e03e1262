# source: pytorch/audio#240, fix PR#242
# mechanism: [factory call without device=] inverse short-time transform falls back on a rectangular window of ones when it is given none; the callers with a window of their own never see it
# phase: signal reconstruction; failing op: aten::mul (cuda 3-D x cpu 1-D)
# expect: raises
import torch
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def frame(signal, n_fft, hop, window):
    return torch.fft.rfft(signal.unfold(-1, n_fft, hop) * window, dim=-1).transpose(-1, -2)

def overlap_add(frames, hop):
    n_fft, count = frames.shape[-2:]
    size = (1, n_fft + hop * (count - 1))
    return F.fold(frames, size, kernel_size=(1, n_fft), stride=(1, hop)).flatten(1)

def inverse(spec, n_fft, hop=None, win_length=None, window=None):
    hop = n_fft // 4 if hop is None else hop
    win_length = n_fft if win_length is None else win_length
    if window is None:
        window = torch.ones(win_length)  # ROOT
    left = (n_fft - win_length) // 2
    window = F.pad(window, (left, n_fft - win_length - left))  # ALSO
    frames = torch.fft.irfft(spec.transpose(-1, -2), n=n_fft, dim=-1)
    signal = overlap_add((frames * window).transpose(-1, -2), hop)  # RAISE
    envelope = overlap_add((window ** 2).expand_as(frames[:1]).transpose(-1, -2), hop)
    return signal / envelope.clamp(min=1e-8)

hann = torch.hann_window(8, periodic=False, device=dev) + 0.1
wave = torch.randn(2, 32, device=dev)
inverse(frame(wave, 8, 2, hann), 8, hop=2, window=hann)
inverse(frame(wave, 8, 2, torch.ones(8, device=dev)), 8, hop=2)
