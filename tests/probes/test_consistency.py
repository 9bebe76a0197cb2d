"""No two answers about one template contradict each other: a sample of `tests.bench.consistency`."""

from __future__ import annotations

import pytest

from tests.bench.consistency import contradictions, templates
from tests.bench.planted import family
from tests.conformance.golden import NO_SHARED, have_shared

FAMILIES = ("chatml", "deepseek-r1", "harmony", "llama3", "mistral", "qwen3")
REAL = (
    "ByteDance-Seed-OSS",  # leaves out the allowed values of parameters
    "Kimi-K2-Instruct",  # calls fail in Jinja2, and are written in llama.cpp
    "Qwen-Qwen3-0.6B",  # cuts answers that quote a tag of reasoning
    "axolotl--exaone",  # puts the role into the marker
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",  # writes calls only beside null content
    "llama-cpp-python--llama_chat_format--function_calling_template--a8f82ad7",  # writes calls as JSON by hand
    "llm-jp-llm-jp-4.1-8b-thinking",  # drops the text beside calls of an open turn
    "llm-prompt-templates--llama3_fire_function_v2--592a18d8",  # fails without variables of its own
    "mistralai-Mistral-Nemo-Instruct-2407",  # puts the system text before the last question
    "vllm--tool_chat_template_phi4_mini",  # means arguments that are JSON text
    "xinference--deepseek-v3",  # writes arguments without the name of the function
)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family(name: str) -> None:
    assert contradictions(name, family(name)[0], examples=5) == []


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
@pytest.mark.parametrize("name", REAL)
def test_a_real_template(name: str) -> None:
    assert contradictions(name, templates()[name], examples=5) == []
