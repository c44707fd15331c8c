"""Public families of models from configurations of transformers: small, with random weights, of full structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

Shown = Mapping[str, Tensor]
# Names of one size differ between families; a configuration leaves alone what it does not know.
SIZES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_dim", "d_ff", "n_inner"), 96),
    **dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "n_layer"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "num_key_value_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    "num_decoder_layers": 2,
    "head_dim": 8,
    "d_kv": 8,
    "vocab_size": 67,
    "use_cache": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def ids(length: int = 12, **others: Tensor) -> Shown:
    """Two sequences of tokens, none of them padding."""
    return {"input_ids": torch.arange(2 * length).reshape(2, length) * 7 % 61 + 3, **others}


def seq2seq() -> Shown:
    """Tokens for an encoder, and for its decoder."""
    return ids(decoder_input_ids=torch.arange(10).reshape(2, 5) * 5 % 59 + 3)


def normal(**shapes: tuple[int, ...]) -> Shown:
    """Normal numbers of these shapes by name."""
    draw = torch.Generator().manual_seed(3)
    return {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}


def pixels(size: int = 32) -> Shown:
    """An image."""
    return normal(pixel_values=(1, 3, size, size))


def decisions() -> Shown:
    """States, actions, rewards and returns of a game."""
    found = normal(states=(2, 6, 17), actions=(2, 6, 4), rewards=(2, 6, 1), returns_to_go=(2, 6, 1))
    return {**found, "timesteps": torch.arange(6).expand(2, 6), "attention_mask": torch.ones(2, 6)}


@dataclass(frozen=True)
class Architecture:
    """A family of models.

    Attributes
    ----------
    name : str
        As a reader knows it.
    model : str
        Its class in transformers.
    zeros : str
        What makes exact zeros in the published models; ``"none"`` with the activation if nothing does.
    config : mapping
        What differs from ``SIZES``; an ellipsis leaves a size to the configuration.
    shows : callable
        Returns a batch.
    """

    name: str
    model: str
    zeros: str
    config: Mapping[str, Any] = field(default_factory=dict)
    shows: Callable[[], Shown] = ids

    @property
    def is_dense(self) -> bool:
        """Whether no published model of the family has exact zeros."""
        return self.zeros.startswith("none")

    def build(self) -> nn.Module:
        """The model in evaluation mode, with normal weights that keep the size of what they read."""
        import transformers

        torch.manual_seed(1)
        kind = getattr(transformers, self.model)
        sizes = {name: size for name, size in {**SIZES, **self.config}.items() if size is not ...}
        model: nn.Module = kind(kind.config_class(**sizes)).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.ndim > 1:
                    parameter.normal_(std=parameter[0].numel() ** -0.5)
                elif not name.endswith("bias") and not parameter.any():
                    parameter.normal_()  # zeros that training moves away from would look like activation sparsity
        return model


RELU, SQUARED, GELU, SILU = "ReLU", "squared ReLU", "none (GELU)", "none (SiLU)"
EXPERTS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 96,
    "expert_capacity": 64,
}
_IMAGE: Final[Mapping[str, Any]] = {"image_size": 32, "patch_size": 8}
_STAGES: Final[Mapping[str, Any]] = {"hidden_sizes": [16, 32], "depths": [1, 1], "embedding_size": 8}
_RESNET: Final[Mapping[str, Any]] = {
    "model_type": "resnet", "out_features": ["stage1", "stage2"], "layer_type": "basic", **_STAGES
}  # fmt: skip
_DETR: Final[Mapping[str, Any]] = {
    "backbone_config": {**_RESNET, "out_features": ["stage2"]},
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "num_queries": 9,
}
LATENT: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("n_group", "topk_group", "first_k_dense_replace"), 1),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "v_head_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "head_dim"), 4),
}
_SPEECH: Final[Mapping[str, Any]] = {"conv_dim": (8, 8), "conv_stride": (5, 4), "conv_kernel": (10, 8)}


def _text(kind: str, names: str, zeros: str, **config: Any) -> Architecture:
    return Architecture(names, kind, zeros, config)


def _translating(kind: str, names: str, zeros: str, **config: Any) -> Architecture:
    return Architecture(names, kind, zeros, config, seq2seq)


def _seeing(kind: str, names: str, zeros: str, size: int = 32, **config: Any) -> Architecture:
    return Architecture(names, kind, zeros, config, partial(pixels, size))


ARCHITECTURES: Final = (
    # Language models with exact zeros.
    _text("OPTForCausalLM", "OPT, Galactica", RELU),
    _text("LlamaForCausalLM", "Llama: ReluLLaMA, ProSparse", RELU, hidden_act="relu"),
    _text("FalconForCausalLM", "Falcon: ReluFalcon", RELU, activation="relu", ffn_hidden_size=96, head_dim=...),
    _text("CTRLLMHeadModel", "CTRL", RELU, dff=96),
    _text("ReformerModel", "Reformer", RELU, attn_layers=["local", "local"], axial_pos_embds=False, is_decoder=False,
          feed_forward_size=96, attention_head_size=8, local_attn_chunk_length=6),
    _text("MobileBertModel", "MobileBERT", RELU, intra_bottleneck_size=16, true_hidden_size=16),
    _text("PersimmonForCausalLM", "Persimmon", SQUARED),
    _text("NemotronForCausalLM", "Nemotron-4, Minitron", SQUARED),
    _text("NemotronHForCausalLM", "Nemotron-H, Nemotron 3", SQUARED, **EXPERTS, mamba_num_heads=8, mamba_head_dim=8,
          ssm_state_size=8, n_groups=2, chunk_size=8, moe_shared_expert_intermediate_size=96,
          layers_block_type=["mamba", "mlp", "attention", "moe"]),
    _text("ArceeForCausalLM", "Arcee AFM", SQUARED),
    _text("BitNetForCausalLM", "BitNet b1.58", SQUARED),
    _text("Jais2ForCausalLM", "Jais 2", SQUARED),
    _text("NanoChatForCausalLM", "nanochat", SQUARED),
    _text("RwkvForCausalLM", "RWKV-4", SQUARED, attention_hidden_size=32, context_length=64),
    _text("Gemma3nForCausalLM", "Gemma 3n", "Gaussian top-k", hidden_size_per_layer_input=8, laurel_rank=4,
          vocab_size_per_layer_input=67, num_hidden_layers=3, num_kv_shared_layers=0, sliding_window=8,
          activation_sparsity_pattern=[0.95, 0.95, 0.0], layer_types=["sliding_attention"] * 2 + ["full_attention"]),
    _text("MixtralForCausalLM", "Mixtral with ReLU", RELU, hidden_act="relu", **EXPERTS),
    _text("OlmoeForCausalLM", "OLMoE with ReLU", RELU, hidden_act="relu", **EXPERTS),
    _text("GPT2LMHeadModel", "GPT-2 with ReLU", RELU, activation_function="relu"),
    # Encoders with decoders.
    _translating("T5ForConditionalGeneration", "T5", RELU),
    _translating("LongT5ForConditionalGeneration", "LongT5", RELU, local_radius=4),
    _translating("SwitchTransformersForConditionalGeneration", "Switch Transformers", RELU, **EXPERTS,
                 num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    Architecture("UDOP", "UdopForConditionalGeneration", RELU, _IMAGE,
                 lambda: {**seq2seq(), "bbox": torch.zeros(2, 12, 4), **normal(pixel_values=(2, 3, 32, 32))}),
    _translating("M2M100ForConditionalGeneration", "M2M-100, NLLB", RELU),
    _translating("NllbMoeForConditionalGeneration", "NLLB-MoE", RELU, **EXPERTS, encoder_sparse_step=2,
                 decoder_sparse_step=2),
    _translating("FSMTForConditionalGeneration", "FSMT", RELU, langs=["en", "de"], src_vocab_size=67,
                 tgt_vocab_size=67),
    _translating("PegasusForConditionalGeneration", "PEGASUS", RELU, activation_function="relu"),
    _translating("SeamlessM4TForTextToText", "SeamlessM4T, text", RELU, speech_encoder_layers=1),
    Architecture("Speech2Text", "Speech2TextForConditionalGeneration", RELU,
                 {"input_feat_per_channel": 16, "conv_channels": 32, "max_source_positions": 64},
                 lambda: {**normal(input_features=(1, 48, 16)), "decoder_input_ids": torch.tensor([[3, 9, 4]])}),
    Architecture("Decision Transformer", "DecisionTransformerModel", RELU, {"max_ep_len": 32}, decisions),
    Architecture("VITS, MMS-TTS", "VitsModel", RELU,
                 {"flow_size": 32, "spectrogram_bins": 9, "duration_predictor_filter_channels": 32,
                  "upsample_initial_channel": 16, "upsample_rates": [4, 4], "upsample_kernel_sizes": [8, 8],
                  "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3]], "depth_separable_channels": 2,
                  "prior_encoder_num_wavenet_layers": 1, "posterior_encoder_num_wavenet_layers": 1}),
    Architecture("TimesFM", "TimesFmModelForPrediction", RELU,
                 {"patch_length": 8, "context_length": 32, "horizon_length": 8, "quantiles": [0.5]},
                 lambda: {"past_values": normal(x=(2, 32))["x"], "freq": torch.zeros(2, dtype=torch.long)}),
    # Detection, segmentation and other images.
    _seeing("DetrForObjectDetection", "DETR", RELU, 64, **_DETR),
    _seeing("ConditionalDetrForObjectDetection", "Conditional DETR", RELU, 64, **_DETR),
    _seeing("TableTransformerForObjectDetection", "Table Transformer", RELU, 64, **_DETR),
    _seeing("DeformableDetrForObjectDetection", "Deformable DETR", RELU, 64,
            **{**_DETR, "backbone_config": _RESNET}, num_feature_levels=2),
    _seeing("MaskFormerForInstanceSegmentation", "MaskFormer", RELU, 64, fpn_feature_size=32, mask_feature_size=32,
            decoder_config={"model_type": "detr", **SIZES, "num_queries": 9, **_DETR},
            backbone_config={"model_type": "swin", "embed_dim": 16, "depths": [1] * 4, "num_heads": [2] * 4,
                             "window_size": 2, "out_features": ["stage1", "stage2", "stage3", "stage4"]}),
    _seeing("SamModel", "SAM", RELU, 64, prompt_encoder_config={"image_size": 64, "hidden_size": 32},
            vision_config={"hidden_size": 32, "output_channels": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                           "image_size": 64, "global_attn_indexes": [1], "mlp_dim": 96, "window_size": 2,
                           "num_pos_feats": 16},
            mask_decoder_config={"hidden_size": 32, "mlp_dim": 96, "num_attention_heads": 4}),
    _seeing("ResNetForImageClassification", "ResNet", RELU, 64, **_STAGES, layer_type="basic"),
    _seeing("RegNetForImageClassification", "RegNet", RELU, 64, **_STAGES, groups_width=8, num_hidden_layers=...),
    _seeing("MobileNetV1ForImageClassification", "MobileNet V1", "ReLU6", 64, depth_multiplier=0.25),
    _seeing("MobileNetV2ForImageClassification", "MobileNet V2", "ReLU6", 64, depth_multiplier=0.25),
    _seeing("SegformerForSemanticSegmentation", "SegFormer", "ReLU in its head", 64, hidden_sizes=[16, 32],
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], patch_sizes=[7, 3], strides=[4, 2],
            mlp_ratios=[2, 2], num_attention_heads=[1, 2], decoder_hidden_size=32),
    # Families without exact zeros.
    _text("LlamaForCausalLM", "Llama 2 and 3", SILU),
    _text("MistralForCausalLM", "Mistral", SILU),
    _text("Qwen2ForCausalLM", "Qwen 2 and 2.5", SILU),
    _text("Qwen3ForCausalLM", "Qwen 3", SILU),
    _text("MixtralForCausalLM", "Mixtral", SILU, **EXPERTS),
    _text("OlmoeForCausalLM", "OLMoE", SILU, **EXPERTS),
    _text("Qwen3MoeForCausalLM", "Qwen 3 MoE", SILU, **EXPERTS),
    _text("DeepseekV3ForCausalLM", "DeepSeek V3, R1", SILU, **EXPERTS, **LATENT),
    _text("GptOssForCausalLM", "gpt-oss", "none (clipped SiLU)", **EXPERTS),
    _text("GemmaForCausalLM", "Gemma", GELU),
    _text("Gemma2ForCausalLM", "Gemma 2", GELU),
    _text("Gemma3ForCausalLM", "Gemma 3", GELU),
    _text("GPT2LMHeadModel", "GPT-2", GELU),
    _text("GPTNeoXForCausalLM", "GPT-NeoX, Pythia", GELU),
    _text("GPTJForCausalLM", "GPT-J", GELU, rotary_dim=4),
    _text("BloomForCausalLM", "BLOOM", GELU),
    _text("MptForCausalLM", "MPT", GELU, n_layers=2, n_heads=4, expansion_ratio=3, max_seq_len=64),
    _text("FalconForCausalLM", "Falcon", GELU, ffn_hidden_size=96, head_dim=...),
    _text("PhiForCausalLM", "Phi 1 and 2", GELU),
    _text("Phi3ForCausalLM", "Phi 3 and 4", SILU),
    _text("Starcoder2ForCausalLM", "StarCoder 2", GELU),
    _text("CohereForCausalLM", "Command R", SILU),
    _text("Olmo2ForCausalLM", "OLMo 2", SILU),
    _text("GraniteForCausalLM", "Granite", SILU),
    _text("SmolLM3ForCausalLM", "SmolLM 3", SILU),
    _text("BertModel", "BERT", GELU),
    _text("RobertaModel", "RoBERTa, E5", GELU),
    _text("AlbertModel", "ALBERT", GELU),
    _text("DistilBertModel", "DistilBERT", GELU, dim=32, hidden_dim=96, n_heads=4, n_layers=2),
    _text("DebertaV2Model", "DeBERTa V2 and V3", GELU),
    _text("ModernBertModel", "ModernBERT", GELU),
    _translating("BartForConditionalGeneration", "BART, mBART", GELU),
    _translating("MarianMTModel", "Marian, Opus-MT", SILU, activation_function="swish"),
    _translating("UMT5ForConditionalGeneration", "mT5, Flan-T5, T5 1.1", GELU),
    _seeing("ViTModel", "ViT, DeiT", GELU, **_IMAGE),
    _seeing("Dinov2Model", "DINOv2", GELU, **_IMAGE),
    _seeing("CLIPVisionModel", "CLIP, SigLIP", GELU, **_IMAGE),
    _seeing("BeitModel", "BEiT", GELU, **_IMAGE),
    Architecture("Whisper", "WhisperForConditionalGeneration", GELU,
                 {"num_mel_bins": 16, "max_source_positions": 24, "max_target_positions": 24},
                 lambda: {**normal(input_features=(1, 16, 48)), "decoder_input_ids": torch.tensor([[3, 9, 4]])}),
    Architecture("wav2vec 2.0, HuBERT", "Wav2Vec2Model", GELU, {**_SPEECH, "num_conv_pos_embeddings": 8,
                 "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 2},
                 lambda: normal(input_values=(1, 1000))),
)  # fmt: skip
