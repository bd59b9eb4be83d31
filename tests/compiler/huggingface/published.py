"""Full-size configurations of well-known models and the parameter counts their authors published.

`configs/NAME.json` holds the fields of a model's config.json that decide its structure, as published in its repository
on huggingface.co. A count is what the source prints; `last_digit` is the value of one unit of its last printed digit
(0 for an exact count), because some sources round and some cut. A count that transformers' module does not hold, and
why, stands in `elsewhere`: what is stored with the model but is no parameter of the language model itself.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from compiler.huggingface.quiet import quiet

FOLDER = Path(__file__).parent / "configs"

# The total of the safetensors metadata, which a repository's page shows as its model size.
METADATA = "safetensors metadata of the repository"
CARD = "model card of the repository"
BILLION = 10**9


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Numbers that a published count includes and transformers' language model holds as no parameter."""

    parameters: int
    reason: str


@dataclass(frozen=True, slots=True)
class Published:
    """A model, where its config.json comes from, and its published parameter count."""

    name: str
    repository: str
    parameters: int
    source: str
    last_digit: int = 0
    elsewhere: Elsewhere = Elsewhere(0, "")


MODELS = (
    Published("llama-3.1-8b", "meta-llama/Llama-3.1-8B", 8_030_261_248, METADATA),
    Published("llama-3.1-70b", "meta-llama/Llama-3.1-70B", 70_553_706_496, METADATA),
    Published("llama-3.1-405b", "meta-llama/Llama-3.1-405B", 405_853_388_800, METADATA),
    Published("llama-2-7b", "meta-llama/Llama-2-7b-hf", 6_738_415_616, METADATA),
    Published("mistral-7b-v0.1", "mistralai/Mistral-7B-v0.1", 7_241_732_096, METADATA),
    Published("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", 46_702_792_704, METADATA),
    Published("qwen2.5-7b", "Qwen/Qwen2.5-7B", 7_615_616_512, METADATA),
    Published("qwen3-8b", "Qwen/Qwen3-8B", 8_190_735_360, METADATA),
    Published("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", 30_532_122_624, METADATA),
    Published("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", 235_093_634_560, METADATA),
    Published("qwen3-next-80b-a3b", "Qwen/Qwen3-Next-80B-A3B-Instruct", 80 * BILLION, CARD, BILLION),
    Published("gemma-2-9b", "google/gemma-2-9b", 9_241_705_984, METADATA),
    Published("gemma-3-1b", "google/gemma-3-1b-pt", 999_885_952, METADATA),
    Published(
        "gemma-3-27b-text",
        "google/gemma-3-27b-pt",
        27_432_406_640,
        METADATA,
        elsewhere=Elsewhere(
            416_866_032 + 1152 * 5376 + 1152, "vision tower (SigLIP So400m), its projection and the norm before it"
        ),
    ),
    Published("phi-2", "microsoft/phi-2", 2_779_683_840, METADATA),
    Published("phi-3-mini-4k", "microsoft/Phi-3-mini-4k-instruct", 3_821_079_552, METADATA),
    Published("phi-4", "microsoft/phi-4", 14_659_507_200, METADATA),
    Published("gpt-oss-20b", "openai/gpt-oss-20b", 20_910_000_000, "arXiv 2508.10925, table 1", 10_000_000),
    Published("gpt-oss-120b", "openai/gpt-oss-120b", 116_830_000_000, "arXiv 2508.10925, table 1", 10_000_000),
    Published("deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite", 15_706_484_224, METADATA),
    # Without the multi-token-prediction module (14B more). The biases of 58 routers over 256 experts are buffers.
    Published(
        "deepseek-v3",
        "deepseek-ai/DeepSeek-V3",
        671 * BILLION,
        CARD,
        BILLION,
        Elsewhere(58 * 256, "router biases, which are buffers"),
    ),
    Published("glm-4-9b", "THUDM/glm-4-9b-hf", 9_400_000_000, METADATA, 100_000_000),
    # The card cuts 106.85; without the multi-token-prediction layer.
    Published(
        "glm-4.5-air",
        "zai-org/GLM-4.5-Air",
        106 * BILLION,
        CARD,
        BILLION,
        Elsewhere(45 * 128, "router biases, which are buffers"),
    ),
    Published("command-r7b", "CohereLabs/c4ai-command-r7b-12-2024", 8_028_033_024, METADATA),
    Published("olmo-2-7b", "allenai/OLMo-2-1124-7B", 7_300_000_000, METADATA, 100_000_000),
    Published("olmoe-1b-7b", "allenai/OLMoE-1B-7B-0924", 6_919_161_856, METADATA),
    Published(
        "granite-3.1-8b",
        "ibm-granite/granite-3.1-8b-instruct",
        8_170_000_000,
        "sizes of the weight files of granite-3.1-8b-base (4.97 + 4.99 + 4.97 + 1.41 GB at 2 bytes)",
        20_000_000,
    ),
    Published(
        "falcon-7b",
        "tiiuae/falcon-7b",
        7_217_189_760,
        METADATA,
        elsewhere=Elsewhere(65024 * 4544, "the output head, which is stored although it is tied to the embedding"),
    ),
    Published("falcon-mamba-7b", "tiiuae/falcon-mamba-7b", 7_270_000_000, METADATA, 10_000_000),
    Published("falcon-h1-7b", "tiiuae/Falcon-H1-7B-Base", 7_590_000_000, METADATA, 10_000_000),
    Published("mamba2-2.7b", "state-spaces/mamba2-2.7b", 2_700_000_000, "arXiv 2405.21060", 100_000_000),
    Published("jamba-v0.1", "ai21labs/Jamba-v0.1", 52 * BILLION, CARD, BILLION),
    Published("xlstm-7b", "NX-AI/xLSTM-7b", 6_865_424_896, "arXiv 2503.13427"),
    Published("minimax-text-01", "MiniMaxAI/MiniMax-Text-01", 456 * BILLION, CARD, BILLION),
    Published("lfm2-1.2b", "LiquidAI/LFM2-1.2B", 1_170_340_608, CARD),
    Published(
        "nemotron-4-340b",
        "nvidia/Nemotron-4-340B-Base",
        9_400_000_000 + 331_600_000_000,
        "arXiv 2406.11704, table 1 (embedding and other parameters)",
        200_000_000,
    ),
    Published("ernie-4.5-0.3b", "baidu/ERNIE-4.5-0.3B-PT", 360_000_000, CARD, 10_000_000),
    Published("ernie-4.5-21b-a3b", "baidu/ERNIE-4.5-21B-A3B-PT", 21 * BILLION, CARD, BILLION),
    Published("hunyuan-a13b", "tencent/Hunyuan-A13B-Instruct", 80 * BILLION, CARD, BILLION),
    Published("dbrx", "databricks/dbrx-base", 132 * BILLION, CARD, BILLION),
    Published("smollm3-3b", "HuggingFaceTB/SmolLM3-3B", 3_075_098_624, METADATA),
    Published("starcoder2-7b", "bigcode/starcoder2-7b", 7_170_000_000, METADATA, 10_000_000),
    Published("gpt2", "openai-community/gpt2", 124_000_000, CARD, 1_000_000),
    Published("opt-6.7b", "facebook/opt-6.7b", 6_700_000_000, "arXiv 2205.01068, table 1", 100_000_000),
    Published("bloom-7b1", "bigscience/bloom-7b1", 7_069_016_064, CARD),
    Published("pythia-6.9b", "EleutherAI/pythia-6.9b", 6_857_302_016, CARD),
    Published("gpt-neox-20b", "EleutherAI/gpt-neox-20b", 20_554_567_680, CARD),
    Published("mpt-7b", "mosaicml/mpt-7b", 6_700_000_000, CARD, 100_000_000),
    Published("stablelm-3b-4e1t", "stabilityai/stablelm-3b-4e1t", 2_795_443_200, CARD),
)


def full_config(name: str) -> PreTrainedConfig:
    """Return the full-size configuration of a model of `MODELS`."""
    fields = json.loads((FOLDER / f"{name}.json").read_text())
    with quiet():
        return CONFIG_MAPPING[fields["model_type"]].from_dict(fields)


def full_model(name: str) -> PreTrainedModel:
    """Return transformers' module of a model of `MODELS` on the meta device; no weights are allocated."""
    with quiet(), torch.device("meta"):
        return AutoModelForCausalLM.from_config(full_config(name))


def parameter_count(name: str) -> int:
    """Return the number of parameters of transformers' module, each tied one counted once."""
    return sum(parameter.numel() for parameter in full_model(name).parameters())
