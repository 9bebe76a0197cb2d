"""Models that vLLM and SGLang do not render by their template."""

from __future__ import annotations

from typing import Any

import pytest

from jinjarun.serving.other_renderers import Server, caveat, other_renderer

FOLDER = ("config.json", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize(
    ("server", "model", "name"),
    [
        ("vllm", {"model_type": "gpt_oss"}, "Harmony"),
        ("vllm", {"architectures": ["DeepseekV32ForCausalLM"]}, "deepseek_v32"),
        ("vllm", {"architectures": ["DeepseekV4ForCausalLM"]}, "deepseek_v4"),
        ("vllm", {"architectures": ["KimiK3ForConditionalGeneration"]}, "kimi_k3"),
        ("vllm", {"files": (*FOLDER, "tekken.json")}, "mistral-common"),
        ("vllm", {"files": ("tokenizer.model.v3",)}, "mistral-common"),
        ("vllm", {"files": ("tokenizer.model",)}, None),
        ("vllm", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "files": FOLDER}, None),
        ("vllm", {}, None),
        ("sglang", {"architectures": ["DeepseekV4ForCausalLM"]}, "dsv4"),
        ("sglang", {"architectures": ["DeepseekV3ForCausalLM"]}, None),
        ("sglang", {"architectures": ["DeepseekV3ForCausalLM"], "has_template": False}, "dsv32"),
        ("sglang", {"model_type": "gpt_oss"}, None),
        ("sglang", {"files": ("tekken.json",)}, None),
    ],
)
def test_who_writes_the_prompt(server: Server, model: dict[str, Any], name: str | None) -> None:
    found = other_renderer(server, **model)
    assert (None if found is None else found.name) == name


def test_a_template_alone_gives_a_caveat() -> None:
    harmony = "{{ '<|start|>assistant<|channel|>final<|message|>' }}"
    assert "Harmony" in (caveat("vllm", harmony) or "")
    assert caveat("sglang", harmony) is None
    assert caveat("vllm", "{{ messages[0].content }}") is None
