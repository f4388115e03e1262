# source: a variation of https://github.com/sniklaus/pytorch-spynet/issues/17
# mechanism: a window is kept under its length alone; a first call on the CPU makes it, calls for the GPU find it
# phase: second call; aten::mul
# expect: raises
import torch

windows = {}


def spectrum(sound, length):
    frames = sound.unfold(-1, length, length // 2)
    if length not in windows:  # ALSO
        window = torch.hann_window(length, device=frames.device)
        windows[length] = window  # ROOT
    return torch.fft.rfft(frames * windows[length]).abs()  # RAISE  # ALSO


def normalized(sound, length):
    return spectrum(sound, length) / spectrum(sound, length).amax()


reference = normalized(torch.randn(64), length=16)
generator = torch.nn.Conv1d(1, 1, 3, padding=1).cuda()
with torch.no_grad():
    made = generator(torch.randn(1, 1, 64, device="cuda"))
normalized(made.flatten(), length=16)
