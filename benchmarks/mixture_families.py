"""Families of mixtures of experts in transformers, and which of them ``layers.replace_experts`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.architectures import EXPERTS, LATENT, Architecture, Shown, ids, seq2seq


@dataclass(frozen=True)
class Mixture(Architecture):
    """A family of mixtures of experts.

    Attributes
    ----------
    reason : str
        Why ``sparsact.layers.replace_experts`` keeps its experts, as its message says; empty if it replaces them.
    """

    zeros: str = ""
    reason: str = ""


def _mixture(kind: str, names: str, reason: str = "", shows: Callable[[], Shown] = ids, **config: Any) -> Mixture:
    return Mixture(names, kind, config={**EXPERTS, **config}, shows=shows, reason=reason)


_INDEXED: Final[Mapping[str, Any]] = {
    **LATENT, "mlp_layer_types": ["dense", "sparse"], "index_topk": 4, "index_head_dim": 8, "index_n_heads": 2
}  # fmt: skip
_OWN: Final = "has a function of its own"
_SECTIONS: Final = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
MIXTURES: Final = (
    _mixture("AfmoeForCausalLM", "Arcee Trinity"),
    _mixture("AriaTextForCausalLM", "Aria", moe_num_experts=4, moe_topk=2),
    _mixture("AXK1ForCausalLM", "A.X K1", **LATENT),
    _mixture("AXK2ForCausalLM", "A.X K2", **LATENT),
    _mixture("BailingHybridForCausalLM", "Ling, Ring", **{**LATENT, "head_dim": 8}, layer_group_size=2),
    _mixture("BeamForCausalLM", "Beam", mlp_layer_types=["dense", "sparse"], n_group=1, topk_group=1),
    _mixture("Cohere2MoeForCausalLM", "Cohere 2 MoE"),
    _mixture("DbrxForCausalLM", "DBRX", f"DbrxExperts {_OWN}", n_heads=4, n_layers=2, max_seq_len=64,
             attn_config={"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
             ffn_config={"hidden_size": 32, "ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2}),
    _mixture("DeepseekV2ForCausalLM", "DeepSeek V2", **LATENT),
    _mixture("DeepseekV3ForCausalLM", "DeepSeek V3, R1, Kimi K2", **LATENT),
    _mixture("DeepseekV32ForCausalLM", "DeepSeek V3.2", **_INDEXED),
    _mixture("DeepseekV4ForCausalLM", "DeepSeek V4"),
    _mixture("DogeForCausalLM", "Doge", f"DogeCDMoE {_OWN}", is_moe=True, num_experts=16),
    _mixture("Dots1ForCausalLM", "dots.llm1", n_shared_experts=1),
    _mixture("Dots3NoteForCausalLM", "dots.note 3", **LATENT),
    _mixture("Ernie4_5_MoeForCausalLM", "ERNIE 4.5"),
    _mixture("ExaoneMoeForCausalLM", "EXAONE MoE"),
    _mixture("FlexOlmoForCausalLM", "FlexOlmo"),
    _mixture("FlintForCausalLM", "Flint", mlp_only_layers=[0], shared_expert_intermediate_size=32),
    _mixture("Gemma4TextModel", "Gemma 4", enable_moe_block=True, top_k_experts=2, hidden_size_per_layer_input=0,
             global_head_dim=8, num_kv_shared_layers=0, vocab_size_per_layer_input=67),
    _mixture("Glm4MoeForCausalLM", "GLM-4.5, GLM-4.6"),
    _mixture("Glm4MoeLiteForCausalLM", "GLM-4.7 Flash", **LATENT),
    _mixture("Glm4vMoeTextModel", "GLM-4.5V", rope_parameters=_SECTIONS | {"mrope_section": [1, 1, 0]}),
    _mixture("GlmMoeDsaForCausalLM", "GLM-5", **_INDEXED),
    _mixture("GptOssForCausalLM", "gpt-oss"),
    _mixture("GraniteMoeForCausalLM", "Granite MoE"),
    _mixture("GraniteMoeHybridForCausalLM", "Granite 4", mamba_n_heads=8, mamba_d_state=8, mamba_chunk_size=8,
             shared_intermediate_size=32, layer_types=["mamba", "attention"]),
    _mixture("GraniteMoeSharedForCausalLM", "Granite MoE shared"),
    _mixture("GraniteMoeSWAForCausalLM", "Granite MoE with windows"),
    _mixture("HunYuanMoEV1ForCausalLM", "Hunyuan A13B"),
    _mixture("HYV3ForCausalLM", "Hunyuan 3"),
    _mixture("HYV4ForCausalLM", "Hunyuan 4"),
    _mixture("InklingForCausalLM", "Inkling"),
    _mixture("Inkling2ForCausalLM", "Inkling 2"),
    _mixture("JambaForCausalLM", "Jamba"),
    _mixture("JetMoeForCausalLM", "JetMoE", f"JetMoeParallelExperts {_OWN}"),
    _mixture("KimiLinearForCausalLM", "Kimi Linear", **LATENT),
    _mixture("Kolibri1ForCausalLM", "Kolibri"),
    _mixture("LagunaForCausalLM", "Laguna"),
    _mixture("Lfm2MoeForCausalLM", "LFM2 MoE", num_dense_layers=1, layer_types=["conv", "full_attention"]),
    _mixture("Llama4ForCausalLM", "Llama 4", intermediate_size_mlp=96, interleave_moe_layer_step=1),
    _mixture("LongcatFlashForCausalLM", "LongCat Flash", f"LongcatFlashExperts {_OWN}", **LATENT, moe_topk=2,
             zero_expert_num=2, expert_ffn_hidden_size=32, ffn_hidden_size=96, num_layers=2, num_hidden_layers=...),
    _mixture("MellumForCausalLM", "Mellum"),
    _mixture("MiMoV2FlashForCausalLM", "MiMo V2 Flash", v_head_dim=8, sliding_window=8, num_key_value_heads=2),
    _mixture("MiniMaxForCausalLM", "MiniMax 01"),
    _mixture("MiniMaxM2ForCausalLM", "MiniMax M2"),
    _mixture("MiniMaxM3VLForCausalLM", "MiniMax M3"),
    _mixture("Mistral4ForCausalLM", "Mistral 4", **LATENT),
    _mixture("MistralLarge4TextModel", "Mistral Large 4", **LATENT),
    _mixture("MixtralForCausalLM", "Mixtral"),
    _mixture("MuseSparkTextModel", "Muse Spark", "MuseSparkExperts normalise the output of each expert"),
    _mixture("NemotronHForCausalLM", "Nemotron-H, Nemotron 3", mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=8,
             n_groups=2, chunk_size=8, moe_shared_expert_intermediate_size=96,
             layers_block_type=["mamba", "mlp", "attention", "moe"]),
    _mixture("NllbMoeForConditionalGeneration", "NLLB-MoE", "NllbMoeExperts are modules, one for each expert",
             shows=seq2seq, encoder_sparse_step=2, decoder_sparse_step=2),
    _mixture("OlmoeForCausalLM", "OLMoE"),
    _mixture("OpenAIPrivacyFilterForTokenClassification", "OpenAI privacy filter"),
    _mixture("PhimoeForCausalLM", "Phi-3.5 MoE"),
    _mixture("Qwen2MoeForCausalLM", "Qwen 1.5 and 2 MoE", shared_expert_intermediate_size=32),
    _mixture("Qwen3MoeForCausalLM", "Qwen 3 MoE"),
    _mixture("Qwen3NextForCausalLM", "Qwen 3 Next", shared_expert_intermediate_size=32),
    _mixture("Qwen3_5MoeForCausalLM", "Qwen 3.5 MoE", shared_expert_intermediate_size=32),
    _mixture("Qwen3VLMoeTextModel", "Qwen 3 VL MoE", rope_parameters=_SECTIONS),
    _mixture("Qwen4ExpForCausalLM", "Qwen 4 experimental"),
    _mixture("SolarOpenForCausalLM", "Solar Open"),
    _mixture("Step3p7TextModel", "Step 3.7", f"Step3p7Experts {_OWN}", mlp_layer_types=["dense", "sparse"],
             sliding_window=8, num_sliding_attention_heads=4, share_expert_dim=32),
    _mixture("SwitchTransformersForConditionalGeneration", "Switch transformers", shows=seq2seq,
             num_sparse_encoder_layers=1, num_sparse_decoder_layers=1),
    _mixture("ZayaForCausalLM", "ZAYA", num_experts_per_tok=1, router_hidden_size=16),
)  # fmt: skip
