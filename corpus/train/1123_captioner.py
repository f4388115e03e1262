# source: huggingface/transformers PR#39975
# mechanism: the position ids of image patches are found with bucketize, whose boundaries are made without a device while the coordinates follow the pixel mask.
# expect: raises
import torch
from torch import nn


class VisionEmbeddings(nn.Module):
    def __init__(self, image_size=16, patch_size=4, dim=12):
        super().__init__()
        self.patch_size = patch_size
        self.side = image_size // patch_size
        self.patch_embedding = nn.Conv2d(3, dim, patch_size, patch_size)
        self.position_embedding = nn.Embedding(self.side**2, dim)

    def forward(self, pixel_values, patch_mask):
        batch, _, height, width = pixel_values.shape
        embeddings = self.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        rows, cols = height // self.patch_size, width // self.patch_size
        boundaries = torch.arange(1 / self.side, 1.0, 1 / self.side)  # ROOT
        position_ids = torch.zeros((batch, rows * cols), dtype=torch.long, device=pixel_values.device)
        for index, mask in enumerate(patch_mask):
            n_rows, n_cols = mask[:, 0].sum(), mask[0].sum()
            y = torch.arange(int(n_rows), device=mask.device) / n_rows * (1 - 1e-6)
            x = torch.arange(int(n_cols), device=mask.device) / n_cols * (1 - 1e-6)
            bucket_y = torch.bucketize(y, boundaries, right=True)  # RAISE
            bucket_x = torch.bucketize(x, boundaries, right=True)
            grid = (bucket_y[:, None] * self.side + bucket_x).flatten()
            position_ids[index, mask.flatten()] = grid
        return embeddings + self.position_embedding(position_ids)


class VisionEncoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.embeddings = VisionEmbeddings(dim=dim)
        self.block = nn.TransformerEncoderLayer(dim, 2, 24, dropout=0.0, batch_first=True)

    def forward(self, pixel_values, patch_mask):
        hidden = self.embeddings(pixel_values, patch_mask)
        return self.block(hidden, src_key_padding_mask=~patch_mask.flatten(1))


class Captioner(nn.Module):
    def __init__(self, vocab=25, dim=12):
        super().__init__()
        self.vision = VisionEncoder(dim)
        self.embed = nn.Embedding(vocab, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, pixel_values, patch_mask):
        image = self.vision(pixel_values, patch_mask).mean(dim=1, keepdim=True)
        return self.head(self.embed(input_ids) + image)


def collate(samples, patch=4):
    images, masks, ids = [], [], []
    for (height, width), tokens in samples:
        image = torch.zeros(3, 16, 16)
        image[:, :height, :width] = torch.randn(3, height, width)
        mask = torch.zeros(4, 4, dtype=torch.bool)
        mask[: height // patch, : width // patch] = True
        images.append(image), masks.append(mask), ids.append(torch.tensor(tokens))
    return {"pixel_values": torch.stack(images), "patch_mask": torch.stack(masks), "input_ids": torch.stack(ids)}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Captioner().to(device)
    batch = collate([((16, 8), [3, 4, 5]), ((12, 16), [6, 7, 8])])
    batch = {k: v.to(device) for k, v in batch.items()}
    logits = model(**batch)
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["input_ids"][:, 1:].flatten())
    loss.backward()
    print(loss.item())


if __name__ == "__main__":
    main()
