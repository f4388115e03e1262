# source: huggingface/transformers PR#39960
# mechanism: without token ids the places of the image are found by comparing with the embedding of the image token, which is looked up with an index made without a device.
# expect: raises
import torch
from torch import nn


class ImageProjector(nn.Module):
    def __init__(self, vision_dim, dim):
        super().__init__()
        self.norm = nn.LayerNorm(vision_dim)
        self.proj = nn.Linear(vision_dim, dim, bias=False)

    def forward(self, features):
        return self.proj(self.norm(features))


class ScaledEmbedding(nn.Embedding):
    def forward(self, input_ids):
        return super().forward(input_ids) * self.embedding_dim**0.5  # RAISE


class MultimodalModel(nn.Module):
    image_token_id = 5

    def __init__(self, vocab=24, dim=16, vision_dim=10):
        super().__init__()
        self.embed_tokens = ScaledEmbedding(vocab, dim)
        self.projector = ImageProjector(vision_dim, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def get_input_embeddings(self):
        return self.embed_tokens

    def get_placeholder_mask(self, input_ids, inputs_embeds, image_features):
        if input_ids is None:
            token = torch.tensor(self.image_token_id, dtype=torch.long)  # ROOT
            mask = (inputs_embeds == self.get_input_embeddings()(token)).all(-1)  # ALSO
        else:
            mask = input_ids == self.image_token_id
        if int(mask.sum()) != image_features.shape[0] * image_features.shape[1]:
            raise ValueError("image tokens and image features do not match")
        return mask.unsqueeze(-1).expand_as(inputs_embeds)

    def forward(self, input_ids=None, inputs_embeds=None, image_features=None):
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        if inputs_embeds is None:
            inputs_embeds = self.get_input_embeddings()(input_ids)
        if image_features is not None:
            image_features = self.projector(image_features.to(inputs_embeds.device))
            mask = self.get_placeholder_mask(input_ids, inputs_embeds, image_features)
            inputs_embeds = inputs_embeds.masked_scatter(mask, image_features.to(inputs_embeds.dtype))
        causal = nn.Transformer.generate_square_subsequent_mask(inputs_embeds.shape[1], device=inputs_embeds.device)
        return self.head(self.layer(inputs_embeds, src_mask=causal, is_causal=True))


class SoftPromptModel(nn.Module):
    def __init__(self, model, length=2):
        super().__init__()
        self.model = model
        dim = model.head.in_features
        self.prompt = nn.Parameter(torch.randn(length, dim) * 0.02)

    def forward(self, input_ids, image_features=None):
        embeds = self.model.get_input_embeddings()(input_ids)
        prompt = self.prompt.to(embeds.device).expand(embeds.shape[0], -1, -1)
        embeds = torch.cat([prompt, embeds], dim=1)
        return self.model(inputs_embeds=embeds, image_features=image_features)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = MultimodalModel().to(device).eval()
    ids = torch.tensor([[2, 5, 5, 5, 9, 11]]).to(device)
    image = torch.randn(1, 3, 10)
    with torch.no_grad():
        print(model(input_ids=ids, image_features=image).shape)
        tuned = SoftPromptModel(model).to(device)
        print(tuned(ids, image_features=image).shape)


if __name__ == "__main__":
    main()
