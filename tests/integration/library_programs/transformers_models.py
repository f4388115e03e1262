"""Architectures of transformers, tiny and with random weights: loss, gradients, and what causal models generate."""

import sys

import torch
import transformers
from library_report import report, token_rows

DEVICE = sys.argv[1]
TEXT = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
        "max_position_embeddings": 64}
# Dropout draws other numbers on a device than on the CPU.
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
          "image_size": 16, "patch_size": 4}
SEQUENCES = {"vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "dropout": 0.0,
             "attention_dropout": 0.0}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
GROUPED = {"num_key_value_heads": 2}
HEADS = {**GROUPED, "head_dim": 8}


def tokens():
    rows = token_rows(2)
    return {"input_ids": rows, "labels": rows}


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def images(size, labels=None):
    return {"pixel_values": noise(2, 3, size, size), "labels": torch.tensor([0, 1]) if labels is None else labels}


def text(name, head="ForCausalLM", config=None, **settings):
    return name + head, (config or name) + "Config", {**TEXT, **settings}, tokens()


# What model, what configuration, its settings, and a batch.
MODELS = [
    text("Bert", "ForMaskedLM", **CALM),
    text("Longformer", "ForMaskedLM", attention_window=4, **{**CALM, "max_position_embeddings": 80}),
    text("BigBird", "ForMaskedLM", block_size=2, num_random_blocks=1, **CALM),
    text("Qwen2", **GROUPED),
    text("Gemma2", sliding_window=4, **HEADS),
    text("Gemma3", config="Gemma3Text", sliding_window=4, **HEADS),
    text("Mistral", sliding_window=4, **GROUPED),
    text("Phi"),
    text("Falcon"),
    text("GPTNeoX"),
    text("Bloom", n_head=4, n_layer=2),
    text("Mixtral", num_local_experts=4, output_router_logits=True, **GROUPED),
    text("Qwen3Moe", num_experts=4, **EXPERTS, **HEADS),
    text("GptOss", num_local_experts=4, num_experts_per_tok=2, **HEADS),
    text("DeepseekV3", n_routed_experts=4, num_key_value_heads=4, n_group=2, topk_group=1, q_lora_rank=16,
         kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=1, **EXPERTS),
    text("Mamba", state_size=4),
    text("Mamba2", state_size=4, num_heads=8, head_dim=8, n_groups=2, chunk_size=4),
    text("Qwen3Next", linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
         num_experts=4, shared_expert_intermediate_size=16, layer_types=["linear_attention", "full_attention"],
         **EXPERTS, **HEADS),
    ("T5ForConditionalGeneration", "T5Config",
     {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
      "decoder_start_token_id": 0}, tokens()),
    ("BartForConditionalGeneration", "BartConfig", {**SEQUENCES, "max_position_embeddings": 64}, tokens()),
    ("XLNetLMHeadModel", "XLNetConfig",
     {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "dropout": 0.0}, tokens()),
    ("ReformerModelWithLMHead", "ReformerConfig",
     {"vocab_size": 64, "hidden_size": 32, "attn_layers": ["local", "local"], "num_attention_heads": 2,
      "attention_head_size": 8, "axial_pos_shape": [4, 4], "axial_pos_embds_dim": [8, 24], "is_decoder": True,
      "max_position_embeddings": 16, "local_attn_chunk_length": 4, "hidden_dropout_prob": 0.0,
      "local_attention_probs_dropout_prob": 0.0},
     tokens()),
    ("ViTForImageClassification", "ViTConfig", VISION, images(16)),
    ("ConvNextForImageClassification", "ConvNextConfig", {"hidden_sizes": [8, 16, 16, 32], "depths": [1] * 4},
     images(32)),
    ("ResNetForImageClassification", "ResNetConfig", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
     images(32)),
    ("SegformerForSemanticSegmentation", "SegformerConfig",
     {"hidden_sizes": [8, 16, 16, 32], "depths": [1] * 4, "num_attention_heads": [1, 1, 2, 2], "num_labels": 3,
      "decoder_hidden_size": 16, "drop_path_rate": 0.0, "classifier_dropout_prob": 0.0},
     images(64, torch.zeros(2, 64, 64, dtype=torch.long))),
    ("CLIPModel", "CLIPConfig",
     {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": VISION, "projection_dim": 16},
     {"input_ids": token_rows(2), "pixel_values": noise(2, 3, 16, 16), "return_loss": True}),
    ("WhisperForConditionalGeneration", "WhisperConfig",
     {**SEQUENCES, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20, "pad_token_id": 0,
      "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
     {"input_features": noise(2, 8, 40), "labels": token_rows(2)}),
    ("Wav2Vec2ForCTC", "Wav2Vec2Config",
     {"vocab_size": 32, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
      "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 4), "num_feat_extract_layers": 2,
      "mask_time_prob": 0.0, "layerdrop": 0.0, "hidden_dropout": 0.0, "attention_dropout": 0.0,
      "activation_dropout": 0.0, "feat_proj_dropout": 0.0, "final_dropout": 0.0, "num_conv_pos_embeddings": 4,
      "num_conv_pos_embedding_groups": 2},
     {"input_values": noise(2, 400), "labels": token_rows(2)[:, :4] % 32}),
]


def run(model_name, config_name, settings, batch):
    torch.manual_seed(0)
    model = getattr(transformers, model_name)(getattr(transformers, config_name)(**settings)).to(DEVICE)
    batch = {key: value.to(DEVICE) if torch.is_tensor(value) else value for key, value in batch.items()}
    model.train()
    loss = model(**batch).loss
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients and all(gradient.device.type == DEVICE for gradient in gradients)
    numbers = {"loss": loss.item(), "gradient": sum(g.double().square().sum().item() for g in gradients) ** 0.5}
    if model_name.endswith("ForCausalLM"):
        model.eval()
        prompt = batch["input_ids"][:, :4]
        numbers["tokens"] = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=5,
                                           do_sample=False, pad_token_id=0).tolist()
    return numbers


report({model[0]: lambda model=model: run(*model) for model in MODELS})
