"""A template beside the tokens of its model: can generation stop, is every marker a token, is BOS written twice.

Nothing here is clean because it could not be looked at: without token data the verdicts are "unknown", and a text is
said to be no token only where the whole vocabulary was read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from jinjarun.errors import JinjarunError, LimitExceeded
from jinjarun.sources import TokenData
from jinjarun.template import Template
from probes.chapters.endings import CONTROL, Ending, endings, markers_in
from probes.chapters.stop import ENGINES, EOG_TEXTS, StopSet, Verdict, has_data, is_gguf, label, stop_sets, verdicts
from probes.chats import canaries
from probes.chats.canaries import USUAL
from probes.chats.messages import REASONING_FIELDS, Chat
from probes.chats.named import CHATS
from probes.rendering.renders import LLAMA_RAW, LLAMA_SERVER, RAW
from probes.report import Declared, NotEvaluated, Stop, TokensChapter

if TYPE_CHECKING:
    from probes.rendering.counting import Counter
    from probes.rendering.renders import Renders

TEXT_THEN_TOKENIZE = "transformers_text_then_tokenize"
APPLIED = "transformers_apply_chat_template"
SERVER = "llama-server"
SERVER_TEXT = "llama.cpp_text_then_tokenize"
BOS_PATHS = (TEXT_THEN_TOKENIZE, APPLIED, SERVER, SERVER_TEXT)
"""The ways from a prompt to tokens: rendering to text and calling the tokenizer on it (many training scripts), letting
`apply_chat_template` tokenize (it adds nothing), llama-server's chat endpoint, and sending the text to /completion."""

_MARKER_CHATS = (
    "user",
    "system-user",
    "two-turns",
    "no-generation-prompt",
    "tools-offered",
    "call-answered",
    "call-string-args",
    "parallel-calls",
    "reasoning-history",
    "reasoning-tool-turn",
)
_NULL_CHATS = ("user", "two-turns", "no-generation-prompt", "call-answered")

_BOS_BY_MODEL = {"llama": True, "bert": True, "t5": False, "rwkv": False, "plamo2": False}
_BOS_BY_PRE = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"}
    | {"tekken", "chameleon"}
)
_BOS_ALWAYS = frozenset({"gemma4", "granite-embed-multi-311m"})
"""What llama.cpp assumes for an absent `add_bos_token`: by tokenizer, and for byte-level BPE by pre-tokenizer; and the
pre-tokenizers for which it adds BOS whatever the key says (src/llama-vocab.cpp, commit 00ad355)."""


def tokens_chapter(renders: Renders, tokens: TokenData | None, *, counter: Counter | None = None) -> TokensChapter:
    """Markers that are no token, and where BOS comes out twice.

    `not_in_vocabulary`: markers of a shape that only tokens have (`<|im_end|>`), and ends of turns, that are none.
    `not_single_token`: tags such as `<tools>` or `[INST]` that the model reads as several ordinary tokens; many models
    were trained so. With a `counter` of tokens also markers of the vocabulary that its tokenizer splits all the same.
    """
    if tokens is None or not has_data(tokens):
        return TokensChapter(
            available=False, not_in_vocabulary=[], not_single_token=[], double_bos=dict.fromkeys(BOS_PATHS)
        )
    unknown = unknown_markers(renders, tokens)
    split = [marker.text for marker in unknown if not marker.control]
    if counter is not None and counter.unit == "tokens":
        no_tokens = {marker.text for marker in unknown}
        written = written_markers(renders, known_texts(tokens))
        split += [text for text in written if text not in no_tokens and tokens.find(text) and counter.count(text) > 1]
    return TokensChapter(
        available=True,
        not_in_vocabulary=[marker.text for marker in unknown if marker.control],
        not_single_token=split,
        double_bos=double_bos(renders, tokens),
    )


def stop_chapter(renders: Renders, tokens: TokenData | None) -> Stop:
    """What ends an assistant turn, and whether each engine stops there.

    `written` are the markers that end an answer and a turn with calls. An engine "stops" where it stops in both cases,
    and "never_stops" where the files show that it does not in one. `client_should_set` holds what a request should name
    as its stop, because an engine does not stop by itself or is not known to; empty where all of them do.
    """
    if tokens is None or not has_data(tokens):
        tokens = TokenData()
    found = turn_endings(renders, tokens)
    sets = stop_sets(tokens)
    judged = {engine: verdicts(engine, found, tokens) for engine in ENGINES}
    should_set = [
        text
        for i, ending in enumerate(found)
        if (text := ending.marker or ending.separator) is not None
        and any(judged[engine][i] != "stops" for engine in ENGINES)
        and not _goes_on(renders, ending)
    ]
    return Stop(
        written=_distinct(ending.marker for ending in found),
        declared=_declared(tokens, sets["llama.cpp"]),
        by_engine={engine: _together(judged[engine]) for engine in ENGINES},
        client_should_set=_distinct(should_set),
    )


def _goes_on(renders: Renders, ending: Ending) -> bool:
    """Whether a model also writes the marker inside of its turn, so that a request that stops there cuts answers: it
    opens the turn of the assistant, or closes a block that is not the last."""
    marker, path = ending.marker, ending.path
    if marker is None:
        return False
    if marker not in ending.closing:
        opening = (renders.render(path, canaries.user_only()).text or "").rpartition(canaries.USER)[2]
        return marker in opening
    fields = canaries.fields_of(REASONING_FIELDS, canaries.REASONING)
    chats = (
        (canaries.prefill(**fields), canaries.REASONING, canaries.ANSWER),
        (canaries.one_call(USUAL.but(beside="text")), canaries.TEXT, canaries.VALUE),
    )
    for chat, first, last in chats:
        text = renders.render(path, chat).text or ""
        start, end = text.find(first), text.rfind(last)
        if 0 <= start < end and marker in text[start:end]:
            return True
    return False


def not_judged(tokens: TokenData | None) -> list[NotEvaluated]:
    """What the report cannot say of stops and tokens for want of files, and which file would tell."""
    if tokens is None or not has_data(tokens):
        how = "probe a model folder, a tokenizer_config.json or a GGUF file"
        return [NotEvaluated(what="stop and tokens", why="needs token data", how=how)]
    missing = []
    if not is_gguf(tokens) and tokens.generation_eos is None and tokens.model_eos is None:
        why = "the list of tokens that end generation was not read"
        missing.append(NotEvaluated(what="stop of transformers", why=why, how="add generation_config.json"))
    if tokens.vocabulary is None:
        why = "the vocabulary was not read, so no text can be said to be no token"
        missing.append(NotEvaluated(what="tokens.not_in_vocabulary", why=why, how="add tokenizer.json"))
    return missing


def turn_endings(renders: Renders, tokens: TokenData | None) -> tuple[Ending, ...]:
    """How turns end, found with the help of the model's special tokens."""
    return endings(renders, known_texts(tokens))


def known_texts(tokens: TokenData | None) -> frozenset[str]:
    """Texts that are markers whatever their shape: special tokens, and what llama.cpp takes for an end."""
    if tokens is None:
        return frozenset(EOG_TEXTS)
    named = [*tokens.special.values(), *(tokens.generation_eos or ()), *(tokens.model_eos or ())]
    special = [token for token in tokens.added if token.type == "control"]
    return frozenset({token.text for token in (*named, *special) if token.text}.union(EOG_TEXTS))


def _declared(tokens: TokenData, eog: StopSet) -> Declared:
    listed = tokens.generation_eos
    return Declared(
        eos_token=None if tokens.eos is None else label(tokens.eos),
        generation_config=None if listed is None else [label(token) for token in listed],
        llama_cpp_eog=eog.texts if eog.tokens or eog.complete else None,
    )


def _together(judged: list[Verdict]) -> Verdict:
    if not judged:
        return "unknown"
    for worse in ("never_stops", "unknown"):
        if worse in judged:
            return cast(Verdict, worse)
    return "stops"


# Stops that nobody declares


@dataclass(frozen=True, slots=True)
class UndeclaredStop:
    """A marker that ends a turn and does not end generation in `engines`; in `stopping` it does."""

    marker: str
    ending: Ending
    engines: tuple[str, ...]
    stopping: tuple[str, ...]
    is_token: bool | None
    declared: dict[str, list[str]]


def undeclared_stops(renders: Renders, tokens: TokenData | None) -> list[UndeclaredStop]:
    """The markers at which an engine is known not to stop."""
    if tokens is None or not has_data(tokens):
        return []
    sets = stop_sets(tokens)
    found: list[UndeclaredStop] = []
    endings_found = turn_endings(renders, tokens)
    judged = {engine: verdicts(engine, endings_found, tokens) for engine in ENGINES}
    for i, ending in enumerate(endings_found):
        marker = ending.marker
        never = tuple(engine for engine in ENGINES if judged[engine][i] == "never_stops")
        if marker is None or not never or any(other.marker == marker for other in found):
            continue
        stopping = tuple(engine for engine in ENGINES if judged[engine][i] == "stops")
        declared = {engine: sets[engine].texts for engine in never}
        found.append(UndeclaredStop(marker, ending, never, stopping, tokens.is_token(marker), declared))
    return found


# Markers that are no token


@dataclass(frozen=True, slots=True)
class UnknownMarker:
    """A marker that is no token of the vocabulary.

    `control`: its shape, or its place at the end of a turn, says that it is meant as one. `ends_turn`: an assistant's
    turn ends with it. `siblings`: other markers of its shape are tokens, so that this one was forgotten or misspelt;
    without them the format as a whole may be one of ordinary text. `chat`, `path`, `span`: where it stands.
    """

    text: str
    control: bool
    ends_turn: bool
    siblings: bool
    chat: Chat
    path: str
    span: tuple[int, int]


def unknown_markers(renders: Renders, tokens: TokenData | None) -> list[UnknownMarker]:
    """The markers that the template itself writes and that the vocabulary, wholly read, does not have."""
    if tokens is None or tokens.vocabulary is None:
        return []
    ends = {ending.marker for ending in turn_endings(renders, tokens) if ending.marker in ending.closing}
    written = written_markers(renders, known_texts(tokens))
    control = {text: text in ends or CONTROL.fullmatch(text) is not None for text in written}
    tokens_of_shape = {text[:2] for text in written if control[text] and tokens.is_token(text)}
    return [
        UnknownMarker(text, control[text], text in ends, text[:2] in tokens_of_shape, *place)
        for text, place in written.items()
        if tokens.is_token(text) is False
    ]


def written_markers(renders: Renders, known: frozenset[str]) -> dict[str, tuple[Chat, str, tuple[int, int]]]:
    """Every marker that begins and ends in the template's own text, and where it stands first."""
    path = RAW if renders.loads(RAW) is None else LLAMA_RAW
    found: dict[str, tuple[Chat, str, tuple[int, int]]] = {}
    for name in _MARKER_CHATS:
        chat = CHATS[name]()
        outcome = renders.spans(path, chat)
        if outcome.text is None:
            continue
        own = bytearray(len(outcome.text))
        for span in outcome.spans:
            if not span.is_input:
                own[span.start : span.end] = b"\1" * (span.end - span.start)
        for marker in markers_in(outcome.text, known):
            if own[marker.start] and own[marker.end - 1]:
                found.setdefault(marker.text, (chat, path, (marker.start, marker.end)))
    return found


# BOS


def double_bos(renders: Renders, tokens: TokenData | None) -> dict[str, bool | None]:
    """By way from prompt to tokens (`BOS_PATHS`), whether two BOS stand at the start; None where it cannot be told."""
    answers: dict[str, bool | None] = dict.fromkeys(BOS_PATHS)
    if tokens is None or not has_data(tokens):
        return answers
    bos = "" if tokens.bos is None else tokens.bos.text or ""
    if not bos:
        return dict.fromkeys(BOS_PATHS, False) if tokens.bos is None else answers
    python = renders.render(RAW, CHATS["user"]()).text
    if python is not None and not is_gguf(tokens):
        answers[APPLIED] = leading(python, bos) > 1
        answers[TEXT_THEN_TOKENIZE] = _doubled(python, bos, _python_adds_bos(tokens, bos))
    bare = renders.render(LLAMA_RAW, CHATS["user"]()).text
    adds = llama_cpp_adds_bos(tokens)
    if bare is not None:
        answers[SERVER_TEXT] = _doubled(bare, bos, adds)
    served = renders.render(LLAMA_SERVER, CHATS["user"]()).text
    if served is not None:
        answers[SERVER] = _doubled(served.removeprefix(bos) if adds else served, bos, adds)
        if adds is None and leading(served, bos) == 1 and served.startswith(bos):
            answers[SERVER] = False  # kept where the tokenizer adds none, trimmed where it does
    return answers


def leading(text: str, bos: str) -> int:
    """How many BOS stand at the start, with nothing but white space between them."""
    count = 0
    while (rest := text.lstrip()).startswith(bos):
        text = rest[len(bos) :]
        count += 1
    return count


def _doubled(text: str, bos: str, adds: bool | None) -> bool | None:
    written = leading(text, bos)
    if written > 1 or not written:
        return written > 1
    return adds


def _python_adds_bos(tokens: TokenData, bos: str) -> bool | None:
    """Whether the tokenizer puts BOS before a text. The post-processor of tokenizer.json decides; without that file
    transformers builds a tokenizer of the class, and this project does not say what it does."""
    return None if tokens.post_processor is None else bos in tokens.post_processor.prepends


def llama_cpp_adds_bos(tokens: TokenData) -> bool | None:
    """`add_bos_token` of a GGUF file, or what llama.cpp assumes where it is absent; for Hugging Face's files what its
    converter would write, None where it writes nothing and the kind of tokenizer decides."""
    if is_gguf(tokens):
        if tokens.pre in _BOS_ALWAYS or tokens.model == "gemma4":
            return True
        if tokens.add_bos is not None:
            return tokens.add_bos
        return _BOS_BY_MODEL.get(tokens.model or "", tokens.pre in _BOS_BY_PRE)
    if tokens.add_bos is not None:
        return tokens.add_bos
    first = tokens.post_processor.prepends[:1] if tokens.post_processor is not None else ()
    return True if tokens.bos is not None and first == (tokens.bos.text,) else None


# Special tokens that are null


@dataclass(frozen=True, slots=True)
class NullToken:
    """A special token that the template prints and the model does not have.

    `effect`: "raises" where the render fails without it, "nothing" where it silently writes nothing. `ends_turn`: what
    is missing is the end of a turn.
    """

    name: str
    effect: Literal["raises", "nothing"]
    ends_turn: bool
    chat: Chat
    message: str | None


def null_tokens(renders: Renders, tokens: TokenData | None) -> list[NullToken]:
    """The variables `*_token` that the template prints unguarded and that the tokenizer leaves undefined."""
    template = renders.template("transformers")
    if tokens is None or not has_data(tokens) or not isinstance(template, Template):
        return []
    missing = [name for name in sorted(template.names) if name.endswith("_token") and _is_null(name, tokens)]
    found = [_null_token(renders, template, name, tokens) for name in missing]
    return [token for token in found if token is not None]


def _is_null(name: str, tokens: TokenData) -> bool:
    token = tokens.special.get(name.removesuffix("_token"))
    return token is None or (token.text is None and token.id is None)


STANDIN = "\ue000token\ue001"
"""Stands for a special token to see whether it is printed: private-use characters, which no template writes."""


def _null_token(renders: Renders, template: Template, name: str, tokens: TokenData) -> NullToken | None:
    special = {f"{key}_token": token.text for key, token in tokens.special.items() if token.text}
    for chat_name in _NULL_CHATS:
        chat = CHATS[chat_name]()
        given, _ = _try(renders, template, chat, special | {name: STANDIN})
        if given is None or STANDIN not in given:
            continue
        absent, error = _try(renders, template, chat, special)
        if error is not None:
            return NullToken(name, "raises", False, chat, error.message)
        if absent is None or _asks_whether_defined(renders.source, name):
            continue
        if _try(renders, template, chat, special | {name: None})[0] == absent:  # it asks: if bos_token
            continue
        return NullToken(name, "nothing", _ends_turns(renders, template, special | {name: STANDIN}), chat, None)
    return None


def _asks_whether_defined(source: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\s+is\s+(?:not\s+)?(?:defined|undefined|none)\b", source) is not None


def _ends_turns(renders: Renders, template: Template, special: dict[str, Any]) -> bool:
    """Whether the stand-in follows an assistant's own text."""
    chat = CHATS["two-turns"]()
    text, _ = _try(renders, template, chat, special)
    said = next(message["content"] for message in chat["messages"] if message["role"] == "assistant")
    return text is not None and re.search(re.escape(said) + r"\s*" + STANDIN, text) is not None


def _try(
    renders: Renders, template: Template, chat: Chat, special: dict[str, Any]
) -> tuple[str | None, JinjarunError | None]:
    """A render with exactly these special tokens, as transformers passes them: what is null is left out."""
    renders.count += 1
    context = {
        "messages": chat["messages"],
        "tools": chat.get("tools"),
        "documents": None,
        "add_generation_prompt": chat.get("add_generation_prompt", True),
        **special,
    }
    try:
        return template.render_context(context, now=renders.now).text, None
    except LimitExceeded:
        return None, None
    except JinjarunError as error:
        return None, error


def _distinct(texts: Any) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text is not None))
