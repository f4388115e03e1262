# source: huggingface/transformers PR#37612 ('[causal mask] fix preparation with multi-gpu', #37606: the mask follows cache_position, not inputs_embeds)
# mechanism: [device_map] cache positions are on the first GPU, the language model's embeddings on the second, the mask is made where the embeddings are
# phase: mask preparation; failing op: aten::gt
# expect: raises
# needs: 2 GPUs
# root: modeling_llama.py:_prepare_4d_causal_attention_mask_with_cache_position: the range is made on device (of inputs_embeds)
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)
dev1 = torch.device('cuda', 1)


def prepare_mask(sequence_length, target_length, dtype, device, cache_position):
    span = torch.arange(target_length, device=device)  # ROOT
    later = span > cache_position.reshape(-1, 1)       # RAISE  # ALSO
    mask = torch.zeros(sequence_length, target_length, dtype=dtype, device=later.device)
    return mask.masked_fill(later, torch.finfo(dtype).min)[None, None]


class VisionLanguage(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = nn.Linear(6, 4).to(dev)
        self.embed_tokens = nn.Embedding(10, 4).to(dev1)

    def forward(self, input_ids, pixels):
        image = self.vision(pixels).unsqueeze(0)
        cache_position = torch.arange(image.size(1) + input_ids.size(1), device=image.device)  # ALSO
        text = self.embed_tokens(input_ids.to(dev1))
        embeds = torch.cat([image.to(text.device), text], 1)
        n = embeds.size(1)
        return prepare_mask(n, n, embeds.dtype, embeds.device, cache_position)  # ALSO

VisionLanguage()(torch.tensor([[1, 2, 3]], device=dev), torch.ones(2, 6, device=dev))
