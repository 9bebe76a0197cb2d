"""Models whose prompts vLLM 0.33.0 and SGLang 0.5.23 write by code of their own, whatever template comes along.

Which ones these are is decided by the model's files: the architecture and the type in config.json, and the files of
its tokenizer. Facts: vLLM's config/model.py and tokenizers/registry.py; SGLang's entrypoints/openai/serving_chat.py
(_resolve_chat_encoding_spec).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

Server = Literal["vllm", "sglang"]


@dataclass(frozen=True, slots=True)
class OtherRenderer:
    """Code that takes the place of the template.

    A model is known by its first architecture (a shell pattern), by its type, or by the names of files. `signs` are
    texts by which a template of such a model is known; all of a row have to be there.
    """

    server: Server
    name: str
    architecture: str | None = None
    model_type: str | None = None
    files: tuple[str, ...] = ()
    only_without_template: bool = False
    signs: tuple[str, ...] = ()

    def takes(self, architecture: str, model_type: str, files: Collection[str]) -> bool:
        if self.architecture is not None:
            return fnmatch.fnmatchcase(architecture, self.architecture)
        if self.model_type is not None:
            return model_type == self.model_type
        return any(fnmatch.filter(files, pattern) for pattern in self.files)


RENDERERS = (
    OtherRenderer("vllm", "Harmony", model_type="gpt_oss", signs=("<|channel|>", "<|start|>")),
    OtherRenderer("vllm", "deepseek_v32", "DeepseekV32ForCausalLM", signs=("｜DSML｜function_calls",)),
    OtherRenderer("vllm", "deepseek_v4", "DeepseekV4ForCausalLM", signs=("｜DSML｜tool_calls",)),
    OtherRenderer("vllm", "kimi_k3", "KimiK3ForConditionalGeneration"),
    OtherRenderer(
        "vllm", "mistral-common", files=("tekken.json", "tokenizer.model.v*"), signs=("[INST]", "[AVAILABLE_TOOLS]")
    ),
    OtherRenderer("sglang", "dsv4", "*DeepseekV4*", signs=("｜DSML｜tool_calls",)),
    OtherRenderer("sglang", "dsv32", "*DeepseekV3*", only_without_template=True),
    OtherRenderer("sglang", "kimi_k3", "KimiK3*"),
)
"""By server, in its order, who writes the prompt instead of a template."""


def other_renderer(
    server: Server,
    *,
    architectures: Collection[str] = (),
    model_type: str = "",
    files: Collection[str] = (),
    has_template: bool = True,
) -> OtherRenderer | None:
    """Who writes the prompts of a model, or None where its template does.

    `architectures` and `model_type` are those of config.json; `files` the names in the model's folder.
    """
    first = next(iter(architectures), "")
    return next(
        (
            one
            for one in RENDERERS
            if one.server == server
            and one.takes(first, model_type, files)
            and not (one.only_without_template and has_template)
        ),
        None,
    )


def caveat(server: Server, source: str) -> str | None:
    """Where only a template is known: a sentence that the server may not use it; None where nothing hints at that."""
    for one in RENDERERS:
        if one.server == server and one.signs and all(sign in source for sign in one.signs):
            return f"this looks like a template of a model whose prompts {server} writes by {one.name} instead"
    return None
