# source: huggingface/transformers PR#46221
# mechanism: [model-parallel hook] encoder and decoder sit on two GPUs; the cross-attention mask takes its device from the encoder states although the decoder's queries use it
# phase: forward (decoder); failing op: aten::masked_fill
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
def bidirectional_mask(inputs_embeds, encoder_hidden_states=None):
    embeds = inputs_embeds if encoder_hidden_states is None else encoder_hidden_states
    batch, device = embeds.shape[0], embeds.device  # ROOT
    hidden = torch.zeros(batch, inputs_embeds.shape[1], embeds.shape[1], dtype=torch.bool, device=device)  # ALSO
    hidden[:, :, -1] = True
    return hidden  # ALSO

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(4, 4), nn.Linear(4, 4)

    def attend(self, x, memory, mask):
        memory = self.kv(memory.to(x.device))
        scores = self.q(x) @ memory.transpose(1, 2)
        return scores.masked_fill(mask, -1e9).softmax(-1) @ memory  # RAISE  # ALSO

    def forward(self, x, memory):
        return x + self.attend(x, memory, bidirectional_mask(x, memory))  # ALSO

encoder, decoder = nn.Linear(4, 4).to(dev), Decoder().to(d1)
memory = encoder(torch.randn(2, 5, 4, device=dev))
decoder(torch.randn(2, 3, 4, device=d1), memory)
