# SPDX-License-Identifier: Apache-2.0
"""The Python worker: asks a loss that a user brings, as PROTOCOL.md says.

One file that needs nothing but torch (Python 3.9+, torch 2.1+). It runs in the user's interpreter, as
`python -c SOURCE` or `python worker.py`, or inside a test process: `serve(my_loss, request_fd, reply_fd)`.
"""

from __future__ import annotations

import os
import sys


def _take_descriptors() -> tuple[int, int]:
    """Keeps the pipes and gives the subject an empty standard input and standard error to print on."""
    request, reply = os.dup(0), os.dup(1)  # not inheritable: programs that the subject starts lack them
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return request, reply


if __name__ == "__main__":
    # First of all, and without the folder that `-c` puts in front: a random.py of the user's must not
    # stand in for the standard library's while torch is imported.
    _DESCRIPTORS = _take_descriptors()
    if sys.path and sys.path[0] == "":
        del sys.path[0]

import collections
import ctypes
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import json
import linecache
import math
import platform
import re
import struct
import sysconfig
import traceback
from typing import Any, Callable, Iterator, NamedTuple, Optional

try:
    import torch
    _NO_TORCH = ""
except Exception as error:  # whatever a broken installation raises: hello answers with it
    torch = None
    _NO_TORCH = f"{type(error).__name__}: {error}"
try:
    from torch.utils._python_dispatch import TorchDispatchMode
except Exception:  # too old, which hello says
    TorchDispatchMode = object

PROTOCOL = 1
LEAST_TORCH = (2, 1)
LONGEST_FRAME = 1 << 34
LONGEST_MESSAGE = 2000
CACHED = 512


class Trouble(Exception):
    """The worker cannot go on with this subject; the message says what to do."""


class BadResult(Exception):
    """The subject returned something that is no loss."""


# --- frames -----------------------------------------------------------------------------------------

if torch is not None:
    DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
              "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}
    DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
ITEM_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


class Entry(NamedTuple):
    name: str
    dtype: str
    shape: tuple
    start: int
    end: int


def _no_twice(pairs: list) -> dict:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Trouble("a name occurs twice in the header of a frame")
    return result


def parse_header(header: bytes, data_size: int) -> tuple[dict, list[Entry]]:
    """Metadata and tensors of a safetensors header, strictly; entries in the order of the data."""
    try:
        document = json.loads(header.decode("utf-8"), object_pairs_hook=_no_twice)
        metadata = document.pop("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise Trouble("metadata of a frame must be strings")
        entries = []
        for name, value in document.items():
            shape = tuple(value["shape"])
            start, end = value["data_offsets"]
            if any(type(extent) is not int or extent < 0 for extent in shape):
                raise Trouble(f"tensor {name}: bad shape {list(shape)}")
            if end - start != math.prod(shape) * ITEM_SIZES[value["dtype"]]:
                raise Trouble(f"tensor {name}: {end - start} bytes do not make {value['dtype']} {list(shape)}")
            entries.append(Entry(name, value["dtype"], shape, start, end))
    except Trouble:
        raise
    except Exception as error:
        raise Trouble(f"a frame is no safetensors document: {type(error).__name__}: {error}") from None
    entries.sort(key=lambda entry: (entry.start, entry.end))
    at = 0
    for entry in entries:
        if entry.start != at:
            raise Trouble(f"tensor {entry.name}: its data leave a hole or overlap")
        at = entry.end
    if at != data_size:
        raise Trouble(f"a frame has {data_size} bytes of data, its tensors {at}")
    return metadata, entries


def header_end(frame: bytes) -> int:
    if len(frame) < 8 or 8 + int.from_bytes(frame[:8], "little") > len(frame):
        raise Trouble("a frame ends within its header")
    return 8 + int.from_bytes(frame[:8], "little")


def bits(tensor: torch.Tensor) -> bytes:
    """The elements as they lie in a safetensors document."""
    if tensor.layout is not torch.strided:
        tensor = tensor.detach().to_dense()
    if not tensor.is_cpu:
        tensor = tensor.detach().cpu()
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if not tensor.is_contiguous():
        tensor = tensor.detach().contiguous()
    count = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), count) if count else b""


class Encoder:
    """Writes reply frames; what does not change between replies is written once."""

    def __init__(self) -> None:
        self._known: dict = {}

    def frame(self, op: str, identity: Optional[str], metadata: tuple, tensors: list) -> bytes:
        key = (op, metadata, tuple([(name, tensor.dtype, tensor.shape) for name, tensor in tensors]))
        parts = self._known.get(key)
        if parts is None:
            if len(self._known) > CACHED:
                self._known.clear()
            parts = self._known[key] = self._parts(op, metadata, tensors)
        before, after, size = parts
        identity_text = b"" if identity is None else b',"id":' + json.dumps(identity).encode()
        header = before + identity_text + after
        header += b" " * (-len(header) % 8)
        return b"".join([struct.pack("<QQ", 8 + len(header) + size, len(header)), header,
                         *[bits(tensor) for _, tensor in tensors]])

    @staticmethod
    def _parts(op: str, metadata: tuple, tensors: list) -> tuple[bytes, bytes, int]:
        text = lambda value: json.dumps(value, separators=(",", ":"))
        before = '{"__metadata__":{"op":' + text(op)
        after = "".join(f",{text(key)}:{text(value)}" for key, value in metadata) + "}"
        at = 0
        for name, tensor in tensors:
            end = at + tensor.numel() * tensor.element_size()
            after += "," + text(name) + ":" + text({"dtype": DTYPE_NAMES[tensor.dtype],
                                                    "shape": list(tensor.shape),
                                                    "data_offsets": [at, end]})
            at = end
        return before.encode(), (after + "}").encode(), at


# --- names ------------------------------------------------------------------------------------------

# What trainers and papers call the fields and options. One line per name of ours; read from trl,
# liger-kernel, verl, skyrl, openrlhf, areal, torchtune, unsloth-zoo. Case and underscores do not matter.
ALIASES = {
    "log_prob": "logps lprob logprobs log_probs per_token_logps new_logps new_log_prob new_log_probs new_logprobs "
                "curr_logps curr_logprobs current_log_prob current_log_probs cur_log_prob pi_logprobs "
                "policy_logps policy_logprobs policy_log_probs action_log_probs selected_logprobs "
                "next_token_logprobs student_logps token_logps logp lp",
    "old_log_prob": "old_logp old_logps old_lp lp_old logp_old old_logprobs old_log_probs old_per_token_logps "
                    "pi_old_logprobs old_action_log_probs old_policy_logprobs proximal_logprobs prox_logp "
                    "prev_logprobs prev_logps prev_log_probs behavior_log_probs behaviour_log_probs "
                    "behav_logprobs log_probs_old log_prob_old logprobs_old sampled_logprobs",
    "ref_log_prob": "ref_logp ref_logps ref_lp lp_ref logp_ref ref_logprobs ref_log_probs ref_per_token_logps "
                    "reference_logps reference_logprobs reference_log_prob reference_log_probs base_log_probs "
                    "base_logps log_probs_base log_prob_base log_probs_ref ref_logprob ref_policy_logprobs "
                    "reference_policy_logprobs",
    "advantage": "advantages adv advs adv_t token_advantages",
    "mask": "masks attention_mask loss_mask loss_masks response_mask completion_mask action_mask token_mask "
            "full_attention_mask full_mask assistant_mask assistant_masks valid_mask padding_masks "
            "value_padding_masks response_masks experience_mask token_loss_mask eos_mask seq_mask valid",
    "value": "values vpred vpreds value_pred value_preds values_pred new_value new_values phi_values "
             "current_values predicted_values critic_values",
    "old_value": "old_values value_old values_old phi_old_values prev_values prev_value vpreds_old "
                 "value_preds_old",
    "return": "returns ret rets target_value target_values value_target value_targets returns_t target",
    "logits": "logit lm_logits shift_logits policy_logits",
    "label": "labels target targets target_ids target_token_ids input_ids index ids token_ids tokens "
             "selected_token_ids completion_ids action_ids actions shift_labels",
    "student_logits": "logits student s_logits logits_s student_logit policy_logits logits_student",
    "teacher_logits": "teacher t_logits logits_t teacher_logit target_logits ref_logits reference_logits "
                      "logits_teacher",
    "support_token": "support_tokens support_ids topk_ids top_k_ids teacher_token_ids teacher_topk_ids "
                     "teacher_topk_indices topk_indices top_k_indices target_token_ids teacher_indices",
    "teacher_log_prob": "teacher_logprobs teacher_log_probs teacher_logps teacher_topk_logprobs "
                        "teacher_topk_log_probs topk_logprobs top_k_logprobs target_logprobs",
    "hidden": "hidden_states hidden_state last_hidden_state input _input inputs hiddens",
    "weight": "lm_head_weight lin_weight head_weight linear_weight vocab_weight vocab_weights output_weight lm_head",
    "bias": "lm_head_bias lin_bias head_bias linear_bias output_bias",
    "student_hidden": "student_hidden_states student_input hidden_student h_s",
    "student_weight": "student_lm_head student_lin_weight student_head weight_student w_s student_lm_head_weight",
    "teacher_hidden": "teacher_hidden_states teacher_input hidden_teacher h_t",
    "teacher_weight": "teacher_lm_head teacher_lin_weight teacher_head weight_teacher w_t teacher_lm_head_weight",
    "log_prob_weight": "grad_log_prob grad_logp log_prob_grad",
    "entropy_weight": "grad_entropy entropy_grad entropy_coef entropy_coeff",
    "clip_low": "epsilon_low eps_low eps_lo clip_eps_low cliprange_low clip_range_low clip_ratio_low "
                "eps_clip_low ratio_clip_min",
    "clip_high": "epsilon_high eps_high eps_hi clip_eps_high cliprange_high clip_range_high clip_ratio_high "
                 "eps_clip_high eps_clip_higher ratio_clip_max",
    "dual_clip": "delta clip_ratio_c c_clip eps_clip_c dual_clip_c dual_clip_ratio ratio_clip_c",
    "log_ratio_clamp": "log_ratio_clamp_value ratio_clamp log_ratio_max",
    "level": "importance_sampling_level is_level",
    "kl_penalty": "beta kl_coef kl_coeff kl_beta kl_loss_coef kl_loss_coeff init_kl_coef kl_loss_weight "
                  "reference_policy_kl_penalty",
    "kl_estimator": "kl_estimator_type kl_type kl_loss_type estimator kl_penalty kl_penalty_type "
                    "reference_policy_kl_type",
    "kl_input_clamp": "kl_input_clamp_value",
    "kl_output_clamp": "kl_output_clamp_value",
    "kl_weighted": "use_bias_correction_kl",
    "kl_straight_through": "straight_through",
    "max_length": "max_completion_length max_seq_len max_response_length max_tokens loss_scale_factor",
    "value_clip": "cliprange_value clip_range_value value_clip_range value_eps_clip value_cliprange clip_value "
                  "clip_eps eps_clip cliprange clip_range epsilon eps",
    "temperature": "temp tau",
    "beta": "jsd_beta jsd_alpha",
    "num_items": "num_items_in_batch",
    "tail": "add_tail loss_add_tail with_tail",
    "normalisation": "normalization loss_reduction reduction",
    "total_tokens": "num_items_in_batch num_items batch_num_tokens global_valid_toks global_num_tokens "
                    "num_tokens total_valid_tokens",
    "total_sequences": "global_batch_size global_valid_seqs num_sequences",
    "world": "world_size dp_size num_processes",
    "micro_batches": "gradient_accumulation_steps grad_accum_steps num_micro_batches "
                     "current_gradient_accumulation_steps num_mb",
    "micro_batch": "micro_batch_index",
}
# One number for both sides of the clip.
SYMMETRIC_CLIP = "epsilon eps clip_eps cliprange clip_range clip_ratio eps_clip clip_param clip_epsilon clip"
# Only for a parameter that has no default: too short to be sure.
WEAK = {"log_prob": "new cur pi l lps x", "old_log_prob": "old", "ref_log_prob": "ref base",
        "advantage": "a", "mask": "m", "value": "v", "old_value": "v_old old_v", "return": "r g",
        "label": "y", "logits": "x z", "hidden": "x h", "weight": "w", "bias": "b",
        "student_logits": "s p x", "teacher_logits": "t q y", "student_hidden": "s", "teacher_hidden": "t"}
FACTS = ("total_tokens", "total_sequences", "rank_tokens", "rank_sequences", "rank", "world", "micro_batch",
         "micro_batches")


def plain_name(name: str) -> str:
    return name.replace("_", "").lower()


def _plain_names(names: str) -> set[str]:
    return {plain_name(name) for name in names.split()}


_ALIASES = {target: _plain_names(names) for target, names in ALIASES.items()}
_WEAK = {target: _plain_names(names) for target, names in WEAK.items()}
_SYMMETRIC = _plain_names(SYMMETRIC_CLIP)


class Loss:
    """What hello says of the loss."""

    def __init__(self, metadata: dict) -> None:
        self.id = metadata.get("loss", "")
        self.fields = {field["name"]: field for field in json.loads(metadata.get("fields", "[]"))}
        self.options = {option["name"]: option for option in json.loads(metadata.get("options", "[]"))}
        self.outputs = [output["name"] for output in json.loads(metadata.get("outputs", "[]"))]
        self.reductions = json.loads(metadata.get("reductions", "null"))
        self.differentiable = [name for name, field in self.fields.items() if field["role"] == "differentiable"]

    def sources(self) -> Iterator[tuple[str, str]]:
        """Every source with its name, in the order of precedence."""
        yield from ((name, f"field:{name}") for name in self.fields)
        yield from ((name, f"option:{name}") for name in self.options)
        if self.reductions != []:
            yield "reduction", "reduction"
        yield from ((name, f"fact:{name}") for name in FACTS)

    def source_of(self, name: str, others: set[str], required: bool) -> Optional[str]:
        """Where the parameter `name` gets its argument from; `others` are the plain names beside it."""
        plain = plain_name(name)
        sources = list(self.sources())
        for target, source in sources:
            if plain == plain_name(target):
                return source
        # `values` are the critic's of before where the new ones have a name of their own.
        if plain == "values" and "old_value" in self.fields and others & {"vpred", "vpreds", "valuepreds"}:
            return "field:old_value"
        for target, source in sources:
            if plain in _ALIASES.get(target, ()):
                return source
        if plain in _SYMMETRIC and "clip_low" in self.options:
            both = any(other in _ALIASES["clip_low"] | {"cliplow"} for other in others)
            return None if both and not required else "option:clip_low"
        if required:
            for target, source in sources:
                if plain in _WEAK.get(target, ()):
                    return source
        return None

    def check(self, parameter: str, source: str) -> None:
        kind, _, name = source.split(" as ")[0].partition(":")
        known = {"field": self.fields, "option": self.options, "fact": FACTS}
        if kind in known and name not in known[kind]:
            raise Trouble(f"arguments: {parameter}: {self.id} has no {kind} {name!r}; it has "
                          f"{', '.join(known[kind]) or 'none'}")
        if kind == "json":
            try:
                json.loads(source[len("json:"):])
            except ValueError:
                raise Trouble(f"arguments: {parameter}: {source[5:]!r} is no JSON; a word needs quotes: "
                              'json:"token-mean"') from None
        elif kind not in known and source.split(" as ")[0] not in ("reduction", "default"):
            raise Trouble(f"arguments: {parameter}: {source!r} is no source; write field:NAME, option:NAME, "
                          "reduction, fact:NAME, json:VALUE or default")
        if kind != "json":
            for word in source.split(" as ")[1:]:
                if word.strip() not in CONVERSIONS:
                    raise Trouble(f"arguments: {parameter}: unknown conversion 'as {word}'; there are "
                                  f"{', '.join(CONVERSIONS)}")
            if " as rows" in source and not any(field["role"] in ("mask", "label") for field in self.fields.values()):
                raise Trouble(f"arguments: {parameter}: 'as rows' needs a mask or a label, which {self.id} has not")


# --- conversions: `SOURCE as WORD` ------------------------------------------------------------------

IGNORED_LABEL = -100


class Surroundings(NamedTuple):
    """What a conversion may look at besides the value."""

    compute: Any  # dtype of the floating-point fields
    device: Any
    valid: Callable  # () -> bool tensor (sequences, tokens)


def _valid(value: Any) -> Any:
    if value.dtype in (torch.int64, torch.int32):
        return value != IGNORED_LABEL
    return value != 0


def _rows(value: Any, around: Surroundings) -> Any:
    """(sequences, tokens) -> (sequences,): the first valid column of each row."""
    if value.dim() < 2 or value.shape[1] == 0:
        return value.new_zeros(value.shape[:1])
    first = around.valid().to(torch.uint8).argmax(dim=1, keepdim=True)
    return value.gather(1, first).squeeze(1)


def _as_tensor(value: Any, around: Surroundings) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, device=around.device)


def _as_dtype(name: str) -> Callable:
    return lambda value, around: _as_tensor(value, around).to(getattr(torch, name))


CONVERSIONS: dict[str, Callable] = {
    "float": lambda value, around: _as_tensor(value, around).to(around.compute),
    **{name: _as_dtype(name) for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32",
                                          "uint8", "bool")},
    "valid": lambda value, around: _valid(value),
    "padding": lambda value, around: ~_valid(value),
    "ids": lambda value, around: value.clamp(min=0),
    "rows": _rows,
    "tensor": _as_tensor,
}


def number_of(text: str) -> Any:
    """A number as a case file or a metadata string has it."""
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        return float.fromhex(text) if "0x" in text else float(text)


def option_value(text: str, kind: str) -> Any:
    if text == "none":
        return None
    if kind == "choice":
        return text
    number = number_of(text)
    return {"flag": bool, "integer": int}.get(kind, float)(number)


# --- the subject ------------------------------------------------------------------------------------

def clean(text: str) -> str:
    """Text that any reader of UTF-8 takes: names of files may hold bytes that are none."""
    return text.encode("utf-8", "replace").decode()


def source_line(file: str, line: int) -> str:
    return clean(linecache.getline(file, line).strip()) if file else ""


class Subject:
    """What the user brings: a callable, where it is defined, and how it is called."""

    def __init__(self, target: Any, name: str, paths: list[str]) -> None:
        self.name = name
        self.paths = paths
        self.constructed = inspect.isclass(target) and not issubclass(target, torch.autograd.Function)
        self.target = target
        if self.constructed:
            if not issubclass(target, torch.nn.Module) and not any("__call__" in vars(base) for base in target.__mro__):
                raise Trouble(f"{name} is a class without __call__; name a function, or one of its static methods as "
                              f"{name}.METHOD")
            definition = target.forward if issubclass(target, torch.nn.Module) else target.__call__
            self.constructor = self._parameters(target)
            self.parameters = self._parameters(definition)[1:]
            self.call = None
        else:
            definition = target
            self.constructor = []
            owner = getattr(target, "__self__", None)
            if inspect.isclass(owner) and issubclass(owner, torch.autograd.Function) and target.__name__ == "apply":
                definition = owner
            if inspect.isclass(definition):
                self.call = definition.apply
                definition = definition.forward
                self.parameters = [parameter.replace(kind=parameter.POSITIONAL_ONLY)
                                   for parameter in self._parameters(definition)]
                if not hasattr(target, "setup_context") or \
                        target.setup_context is torch.autograd.Function.setup_context:
                    self.parameters = self.parameters[1:]  # ctx
            else:
                self.call = target
                if isinstance(target, torch.nn.Module):
                    definition = target.forward
                if not callable(target):
                    raise Trouble(f"{name} is a {type(target).__name__}, not a function; name a function, a class "
                                  "with __call__ or a torch.nn.Module")
                self.parameters = self._parameters(definition)
        self.bound = set()  # what a functools.partial has given already
        while isinstance(definition, functools.partial):
            self.bound |= set(definition.keywords)
            definition = definition.func
        self.file, self.line, self.code = self._place(definition)

    @staticmethod
    def _parameters(target: Any) -> list[inspect.Parameter]:
        try:
            return list(inspect.signature(target).parameters.values())
        except (ValueError, TypeError):
            raise Trouble(f"{getattr(target, '__name__', target)!r} does not tell its parameters; wrap it: "
                          "def my_loss(log_prob, ...): return it(log_prob, ...)") from None

    @staticmethod
    def _place(definition: Any) -> tuple[str, int, str]:
        definition = inspect.unwrap(definition)
        definition = getattr(definition, "__func__", definition)
        code = getattr(definition, "__code__", None)
        if code is None:
            code = getattr(getattr(type(definition), "__call__", None), "__code__", None)
        if code is None:
            return "", 0, ""
        line = code.co_firstlineno
        for at in range(line, line + 50):  # past the decorators
            text = source_line(code.co_filename, at)
            if re.match(r"(async\s+)?def\b|class\b", text) or "lambda" in text:
                return code.co_filename, at, text
        return code.co_filename, line, source_line(code.co_filename, line)

    def shown(self, file: str) -> str:
        """The name of a source file as users know it."""
        return clean(self._relative(file))

    def _relative(self, file: str) -> str:
        if not file or file.startswith("<"):
            return file
        real = os.path.realpath(file)
        folders = [os.path.realpath(folder) for folder in self.paths[:1]]
        known = sorted({os.path.realpath(folder or os.curdir) for folder in sys.path}, key=len, reverse=True)
        for folder in folders + known:
            if real.startswith(folder.rstrip(os.sep) + os.sep):
                return os.path.relpath(real, folder)
        return file


def _walk(start: Any, dotted: str, where: str) -> Any:
    for part in dotted.split("."):
        if not hasattr(start, part):
            names = [name for name in vars(start) if not name.startswith("_")] if hasattr(start, "__dict__") else []
            names = [name for name in names if callable(getattr(start, name, None))]
            raise Trouble(f"{where} has no {part!r}; it has {', '.join(names[:12]) or 'nothing to call'}")
        start = getattr(start, part)
    return start


def _import_error(what: str, error: BaseException) -> Trouble:
    text = f"importing {what} failed: {type(error).__name__}: {error}"
    if isinstance(error, ModuleNotFoundError):
        text += "; install it in this interpreter, or add its folder to path"
    elif "relative import" in str(error):
        text += "; it is part of a package: name it py:PACKAGE.MODULE:NAME and put the package's folder on path"
    return Trouble(text)


def load(entry: str, paths: list[str]) -> tuple[Any, str, dict]:
    """The object that an entry names, its name, and the versions to report."""
    kind, _, rest = entry.partition(":")
    place, _, name = rest.rpartition(":")
    if kind != "py" or not place or not name:
        raise Trouble(f"entry {entry!r}: write py:FILE.py:NAME or py:PACKAGE.MODULE:NAME")
    versions: dict = {}
    if place.endswith(".py"):
        file = next((path for path in (os.path.join(folder, place) for folder in [*paths, os.curdir])
                     if os.path.isfile(path)), None)
        if file is None:
            raise Trouble(f"there is no file {place} in {os.path.abspath(paths[0] if paths else os.curdir)}")
        file = os.path.abspath(file)
        if os.path.dirname(file) not in sys.path:
            sys.path.insert(len(paths), os.path.dirname(file))
        stem = os.path.splitext(os.path.basename(file))[0]
        if stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ()) or not stem.isidentifier():
            stem = f"brought_{re.sub(r'[^0-9A-Za-z_]', '_', stem)}"  # stands in for nobody's module
        spec = importlib.util.spec_from_file_location(stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[stem] = module  # dataclasses and pickle look there
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            sys.modules.pop(stem, None)
            raise _import_error(place, error) from None
    else:
        try:
            module = importlib.import_module(place)
        except BaseException as error:
            raise _import_error(place, error) from None
        versions = _distribution(place.split(".")[0])
    return _walk(module, name, place), name, versions


def _distribution(package: str) -> dict:
    from importlib import metadata
    try:
        of = getattr(metadata, "packages_distributions", dict)().get(package) or [package]
        return {of[0]: metadata.version(of[0])}
    except Exception:
        version = getattr(sys.modules.get(package), "__version__", None)
        return {package: str(version)} if version else {}


# --- how the subject is called ----------------------------------------------------------------------

class Binding:
    """Which source each parameter gets, and the arguments of a step made from that."""

    def __init__(self, subject: Subject, loss: Loss, overrides: dict) -> None:
        self.subject = subject
        self.loss = loss
        self.positional: list[tuple[str, str]] = []
        self.keywords: list[tuple[str, str]] = []
        self.construction: list[tuple[str, str]] = []
        self._instances: dict = {}
        unused = dict(overrides)
        for name, source in overrides.items():
            if not isinstance(source, str):
                raise Trouble(f"arguments: {name}: write a source, such as field:{name}")
            loss.check(name, source)
        everything = subject.constructor + subject.parameters
        names = {plain_name(parameter.name) for parameter in everything}
        for parameter in subject.constructor:
            self._bind(parameter, names, unused, building=True)
        for parameter in subject.parameters:
            self._bind(parameter, names, unused, building=False)
        rest = [parameter for parameter in subject.parameters if parameter.kind is parameter.VAR_KEYWORD]
        if rest:
            self._bind_rest(rest[0].name, unused)
        if unused:
            raise Trouble(f"arguments: {subject.name} has no parameter {next(iter(unused))!r}; it has "
                          f"{', '.join(parameter.name for parameter in everything)}")
        if loss.fields and not any(source.startswith("field:") for _, source in self.positional + self.keywords):
            raise Trouble(f"no parameter of {subject.name} is a field of {loss.id} ({', '.join(loss.fields)}); say "
                          f"which is which, such as arguments.NAME = \"field:{next(iter(loss.fields))}\"")
        self.recipes_positional = [self._recipe(*pair) for pair in self.positional]
        self.recipes_keywords = [self._recipe(*pair) for pair in self.keywords]
        self.constants = self._constants()
        self.valid_field = next((name for role in ("mask", "label") for name, field in loss.fields.items()
                                 if field["role"] == role), None)

    def _recipe(self, name: str, source: str) -> tuple[str, str, Any, list]:
        """(parameter, kind or source, value, conversions) of one argument."""
        if source == "default":
            return name, "default", next(p.default for p in self.subject.parameters if p.name == name), []
        if source.startswith("json:"):
            return name, "json", json.loads(source[5:]), []
        base, *words = [part.strip() for part in source.split(" as ")]
        conversions = [CONVERSIONS[word] for word in words]
        return (name, "field", base[6:], conversions) if base.startswith("field:") else (name, base, None, conversions)

    def _constants(self) -> list[tuple[str, str, str]]:
        """(source, key of the metadata, kind) of what is no tensor and is passed."""
        result = {}
        for _, source in self.construction + self.positional + self.keywords:
            base = source.split(" as ")[0].strip()
            if base.startswith("option:"):
                result[base] = (base, f"option.{base[7:]}", self.loss.options[base[7:]]["kind"])
            elif base.startswith("fact:"):
                result[base] = (base, base[5:], "integer")
            elif base == "reduction":
                result[base] = (base, base, "choice")
        return list(result.values())

    def _bind(self, parameter: inspect.Parameter, names: set, unused: dict, building: bool) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        required = parameter.default is parameter.empty
        source = unused.pop(parameter.name, None)
        if source is None and parameter.name not in self.subject.bound:
            source = self.loss.source_of(parameter.name, names - {plain_name(parameter.name)}, required)
            if building and source is not None and not source.startswith("option:"):
                source = None  # a constructor knows the options, not the step
            if source == "reduction" and self._speaks_otherwise(parameter.default):
                source = None
        if source is None or source == "default":
            if required and parameter.name not in self.subject.bound:
                raise self._unknown(parameter.name)
            return
        if building:
            self.construction.append((parameter.name, source))
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            at = [p.name for p in self.subject.parameters].index(parameter.name)
            for skipped in self.subject.parameters[len(self.positional):at]:
                self.positional.append((skipped.name, "default"))  # must be passed to come to this one
            self.positional.append((parameter.name, source))
        else:
            self.keywords.append((parameter.name, source))

    def _speaks_otherwise(self, default: Any) -> bool:
        """A default such as "token-mean" or "batchmean": ours would not be understood."""
        return isinstance(default, str) and self.loss.reductions is not None and default not in self.loss.reductions

    def _bind_rest(self, rest: str, unused: dict) -> None:
        if unused.pop(rest, None) == "default":
            return
        taken = {source.split(" as ")[0] for _, source in self.positional + self.keywords + self.construction}
        given = {name for name, _ in self.positional + self.keywords} | self.subject.bound
        for name, source in self.loss.sources():
            if name in unused or source.startswith("fact:") or source in taken or name in given:
                continue
            self.keywords.append((name, source))
        self.keywords += [(name, unused.pop(name)) for name in list(unused)]

    def _unknown(self, name: str) -> Trouble:
        loss = self.loss
        return Trouble(f"{self.subject.name} wants {name!r}, which is no field, option or fact of {loss.id}: give it a "
                       f"default, or write arguments.{name} = \"field:...\" ({', '.join(loss.fields)}), "
                       f"\"option:...\" ({', '.join(loss.options)}), \"reduction\", \"fact:...\" "
                       f"({', '.join(FACTS)}) or \"json:...\"")

    def sources(self) -> dict[str, str]:
        pairs = self.construction + self.positional + self.keywords
        return {name: source for name, source in pairs if source != "default"}

    def reaching(self, kind: str) -> list[str]:
        found = [source.split(" as ")[0][len(kind):] for source in self.sources().values() if source.startswith(kind)]
        return list(dict.fromkeys(found))

    def tied(self) -> dict[str, str]:
        """Options that one parameter stands for together with another."""
        one = any(plain_name(name) in _SYMMETRIC and source == "option:clip_low"
                  for name, source in self.sources().items())
        if one and "clip_high" in self.loss.options and "clip_high" not in self.reaching("option:"):
            return {"clip_high": "clip_low"}
        return {}

    def callee(self, constants: dict) -> Callable:
        """The function; where the subject is a class, its instance for these options."""
        if not self.subject.constructed:
            return self.subject.call
        key = repr([constants.get(source) for _, source in self.construction])
        if key not in self._instances:
            if len(self._instances) > CACHED:
                self._instances.clear()
            given = {name: constant_of(source, constants) for name, source in self.construction
                     if source != "default"}
            self._instances[key] = self.subject.target(**given)
        return self._instances[key]


def constant_of(source: str, constants: dict) -> Any:
    return json.loads(source[5:]) if source.startswith("json:") else constants[source]


# --- a step -----------------------------------------------------------------------------------------

class FieldPlan(NamedTuple):
    name: str
    dtype: Any
    shape: tuple
    count: int
    start: int  # in the frame's data
    size: int  # bytes
    at: int  # in the buffer that the subject gets
    differentiable: bool
    mask_bits: bool  # u8, given as bool where it holds nothing but 0 and 1


class FieldsPlan:
    """The fields of a step as its tensors lie; made once for equal tables."""

    def __init__(self, entries: list[Entry], loss: Loss) -> None:
        self.fields: list[FieldPlan] = []
        # Where the elements lie aligned already, the data are taken as they are.
        self.packed = all(entry.start % ITEM_SIZES[entry.dtype] == 0 for entry in entries)
        at = 0
        for entry in entries:
            field = loss.fields.get(entry.name)
            if field is None:
                raise Trouble(f"a step has the tensor {entry.name!r}, which is no field of {loss.id}")
            self.fields.append(FieldPlan(entry.name, DTYPES[entry.dtype], entry.shape, math.prod(entry.shape),
                                         entry.start, entry.end - entry.start,
                                         entry.start if self.packed else at,
                                         field["role"] == "differentiable",
                                         field["role"] == "mask" and entry.dtype == "U8"))
            at += (entry.end - entry.start + 63) // 64 * 64
        given = {entry.name for entry in entries}
        for name in loss.fields:
            if name not in given:
                raise Trouble(f"a step lacks the field {name!r}")
        self.size = at
        floats = [field.dtype for field in self.fields if field.dtype.is_floating_point]
        self.compute = floats[0] if floats else torch.float32


class StepPlan:
    """Everything of a step request that its header decides; made once for equal headers."""

    def __init__(self, metadata: dict, fields: FieldsPlan, binding: Binding) -> None:
        self.fields = fields.fields
        self.size = fields.size
        self.packed = fields.packed
        self.compute = fields.compute
        self.layout = metadata.get("layout", "contiguous")
        self.explain = metadata.get("explain") == "1"
        self.upstream = float(number_of(metadata.get("upstream", "1")))
        self.valid_field = binding.valid_field
        constants = {}
        for source, key, kind in binding.constants:
            if key not in metadata:
                raise Trouble(f"a step lacks {key}")
            constants[source] = option_value(metadata[key], kind)
        self.call = binding.callee(constants)
        self.positional = [self._argument(source, value, constants, words)
                           for _, source, value, words in binding.recipes_positional]
        self.constants, self.plain_keywords, self.keywords = {}, [], []
        for name, source, value, words in binding.recipes_keywords:
            argument = self._argument(source, value, constants, words)
            if type(argument) is Tensorial and not argument.conversions:
                self.plain_keywords.append((name, argument.field))
            elif type(argument) is Tensorial:
                self.keywords.append((name, argument))
            else:
                self.constants[name] = argument

    @staticmethod
    def _argument(source: str, value: Any, constants: dict, conversions: list) -> Any:
        if source in ("json", "default"):
            return value
        if source == "field":
            return Tensorial(value, None, conversions)
        return Tensorial("", constants[source], conversions) if conversions else constants[source]


class Tensorial(NamedTuple):
    """An argument that is made anew in each step."""

    field: str
    constant: Any
    conversions: list


def _in_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values where the layout wants them; beside them lies a number that would show."""
    if tensor.dim() == 0:
        return tensor.clone()
    shape = list(tensor.shape)
    full = lambda extents: torch.full(extents, 77, dtype=tensor.dtype, device=tensor.device)
    if layout == "padded_rows":
        strided = full([*shape[:-1], shape[-1] + 3]).narrow(-1, 0, shape[-1])
    elif layout == "transposed" and tensor.dim() >= 2:
        strided = full([shape[1], shape[0], *shape[2:]]).transpose(0, 1)
    else:
        strided = full([tensor.numel() + 1]).narrow(0, 1, tensor.numel()).view(shape)
    return strided.copy_(tensor)


class Inputs:
    """The fields of one step: leaves that receive gradients, and what the subject is given."""

    def __init__(self, plan: StepPlan, data: memoryview, device: Any) -> None:
        self.plan = plan
        self.device = device
        if plan.packed:
            work, pristine = bytearray(data), data
        else:
            work = bytearray(plan.size)
            for field in plan.fields:
                work[field.at:field.at + field.size] = data[field.start:field.start + field.size]
            pristine = bytes(work)
        self._work, self._pristine = work, pristine
        self._elsewhere = device is not None or plan.layout != "contiguous"
        self.leaves: dict[str, torch.Tensor] = {}
        self.given: dict[str, torch.Tensor] = {}
        for name, dtype, shape, count, _, size, at, differentiable, mask_bits in plan.fields:
            if mask_bits and not bytes(pristine[at:at + size]).strip(b"\0\1"):
                dtype = torch.bool
            # resize_ gives the shape without making a view: each field has a version of its own.
            tensor = torch.frombuffer(work, dtype=dtype, count=count, offset=at).resize_(shape) if count else \
                torch.empty(shape, dtype=dtype)
            if device is not None:
                tensor = tensor.to(device)
            if differentiable:
                tensor.requires_grad_()
                self.leaves[name] = tensor
                # A trainer's log-probs are no leaves: writing into them works there, so it does here.
                tensor = tensor.clone() if plan.layout == "contiguous" else _in_layout(tensor, plan.layout)
            elif plan.layout != "contiguous":
                tensor = _in_layout(tensor, plan.layout)
            self.given[name] = tensor

    def mutated(self) -> list[str]:
        """The fields whose bits are no longer those of the request."""
        found = []
        quiet = not self._elsewhere and self._work == self._pristine
        for name, _, shape, _, _, size, at, differentiable, _ in self.plan.fields:
            if differentiable or not quiet:
                tensor = self.given[name]
                if tensor.shape != shape or bits(tensor) != self._pristine[at:at + size]:
                    found.append(name)
        return found

    def _valid(self) -> torch.Tensor:
        return _valid(self.given[self.plan.valid_field])

    def _argument(self, argument: Any) -> Any:
        if type(argument) is not Tensorial:
            return argument
        value = self.given[argument.field] if argument.field else argument.constant
        if argument.conversions:
            around = Surroundings(self.plan.compute, self.device, self._valid)
            for conversion in argument.conversions:
                value = conversion(value, around)
        return value

    def call(self) -> Any:
        plan = self.plan
        keywords = dict(plan.constants)
        for name, field in plan.plain_keywords:
            keywords[name] = self.given[field]
        for name, argument in plan.keywords:
            keywords[name] = self._argument(argument)
        if plan.positional:
            return plan.call(*[self._argument(argument) for argument in plan.positional], **keywords)
        return plan.call(**keywords)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)} and {value.dtype}"
    kind = type(value)
    return f"a {kind.__name__}" if kind.__module__ == "builtins" else f"a {kind.__module__}.{kind.__name__}"


def loss_of(result: Any, subject: str, outputs: list[str], wants_graph: bool) -> tuple[Any, Any]:
    """The loss in what the subject returned, and what may hold its outputs."""
    loss = result
    where = "returned"
    if not isinstance(result, torch.Tensor):
        if isinstance(result, (tuple, list)):
            if not result:
                raise BadResult(f"{subject} returned an empty {type(result).__name__}; return the loss")
            loss, where = result[0], f"returned a {type(result).__name__} that begins with"
        elif isinstance(result, dict):
            if "loss" not in result:
                raise BadResult(f"{subject} returned a dict without the key 'loss' (keys: "
                                f"{', '.join(map(str, list(result)[:8]))}); return {{'loss': ...}} or the loss alone")
            loss, where = result["loss"], "returned a dict whose 'loss' is"
        elif hasattr(result, "loss"):
            loss, where = result.loss, f"returned {_described(result)} whose 'loss' is"
    if not isinstance(loss, torch.Tensor):
        if loss is None:
            raise BadResult(f"{subject} {where} None; end it with `return loss`")
        advice = "return the loss as a scalar torch.Tensor"
        if isinstance(loss, (int, float)):
            advice = "return the tensor itself, without .item() or float(): a Python number has no gradient"
        elif type(loss).__module__.split(".")[0] == "numpy":
            advice = "compute with torch and return the tensor itself, without .numpy()"
        raise BadResult(f"{subject} {where} {_described(loss)}; {advice}")
    if not loss.dtype.is_floating_point:
        raise BadResult(f"{subject} {where} {_described(loss)}; a loss is a floating-point scalar")
    if loss.dim() != 0:
        if not wants_graph and len(outputs) == 1:
            return None, {outputs[0]: loss}  # an operation: tensors in, one tensor out
        raise BadResult(f"{subject} {where} {_described(loss)}, where a scalar is needed; reduce it, such as "
                        "`(per_token * mask).sum() / mask.sum().clamp(min=1)`"
                        + ("" if loss.numel() != 1 else ", or `.squeeze()` it"))
    if wants_graph and not loss.requires_grad:
        raise BadResult(f"{subject} {where} {_described(loss)} without a graph: no gradient can flow back; compute it "
                        "from the arguments, without detach(), .item(), torch.no_grad() or a fresh torch.tensor(...)")
    return loss, result


def returned(result: Any, name: str) -> Any:
    """The tensor that the subject returned under this name, or None."""
    places = [result, *result] if isinstance(result, (tuple, list)) else [result]
    for place in places:
        if isinstance(place, torch.Tensor):
            continue
        value = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
        if isinstance(value, torch.Tensor):
            return value
    return None


def sendable(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype in DTYPE_NAMES:
        return tensor
    if tensor.dtype.is_floating_point:
        return tensor.detach().to(torch.float32)
    if tensor.dtype.is_complex:
        raise BadResult(f"an output is {_described(tensor)}; return real numbers")
    return tensor.detach().to(torch.int64)


def finite(tensor: Any) -> bool:
    return tensor is None or not tensor.dtype.is_floating_point or bool(torch.isfinite(tensor).all())


# --- where a line is --------------------------------------------------------------------------------

_OWN_FILE = (lambda: 0).__code__.co_filename
_TORCH = os.path.dirname(torch.__file__) + os.sep if torch is not None else "\0"
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = tuple(os.path.join(sysconfig.get_paths()["stdlib"], name) + os.sep
                  for name in ("site-packages", "dist-packages"))


def foreign(file: str) -> bool:
    """Frames that are nobody's loss: torch's, the standard library's."""
    return file.startswith((_TORCH, "<frozen")) or (file.startswith(_STANDARD) and not file.startswith(_PACKAGES))


class Place(NamedTuple):
    file: str
    line: int


def place_here() -> Optional[Place]:
    """The innermost frame that is neither torch's nor the worker's."""
    frame = sys._getframe(1)
    entered = False  # the tracer's own frames lie innermost
    while frame is not None:
        file = frame.f_code.co_filename
        if file == _OWN_FILE:
            if entered:
                return None  # below it are those that called the worker
        elif foreign(file):
            pass
        else:
            return Place(file, frame.f_lineno)
        if file != _OWN_FILE:
            entered = True
        frame = frame.f_back
    return None


def place_of_node(node: Any) -> Optional[Place]:
    """Where the forward made this node: anomaly mode wrote it down."""
    for entry in reversed(node.metadata.get("traceback_") or []):
        match = re.match(r'\s*File "(.*)", line (\d+)', entry)
        if match is None:
            continue
        if match.group(1) == _OWN_FILE:
            return None
        if not foreign(match.group(1)):
            return Place(match.group(1), int(match.group(2)))
    return None


# --- the guilty line: forward -----------------------------------------------------------------------

SYMBOLS = {"mul": "x", "div": "/", "true_divide": "/", "add": "+", "sub": "-"}
# Operations that only carry values on: an operand is named after what stands before them.
CARRIERS = {"view", "to_copy", "expand", "unsqueeze", "squeeze", "clone", "slice", "select", "transpose", "t",
            "permute", "unsafe_view", "detach", "alias", "lift_fresh"}


def place_key(tensor: torch.Tensor) -> tuple:
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
            tensor.dtype)


def number_text(value: Any) -> str:
    return f"{float(value) + 0.0:.6g}"  # -0 reads as 0


def bad_elements(tensor: torch.Tensor) -> torch.Tensor:
    """Flat indices of the non-finite elements, NaN first."""
    flat = tensor.detach().reshape(-1)
    if not flat.dtype.is_floating_point:
        return torch.empty(0, dtype=torch.int64)
    return torch.cat([flat.isnan().nonzero(), flat.isinf().nonzero()]).reshape(-1)


def aligned(flat_index: int, shape: tuple, operand: torch.Tensor) -> Optional[int]:
    """Flat index of the element of `operand` that broadcasting puts at `flat_index` of `shape`."""
    if operand.dim() == len(shape) - 1 and tuple(operand.shape) != shape[1:]:
        # A reduction without keepdim: the axis that is missing.
        for axis in range(len(shape) - 1, -1, -1):
            if tuple(operand.shape) == shape[:axis] + shape[axis + 1:]:
                inner = math.prod(shape[axis + 1:])
                return flat_index // (inner * shape[axis]) * inner + flat_index % inner
    if operand.dim() > len(shape):
        return None
    result, stride = 0, 1
    rest = flat_index
    for back in range(1, len(shape) + 1):
        at = rest % shape[-back] if shape[-back] else 0
        rest //= shape[-back] or 1
        if back <= operand.dim():
            extent = operand.shape[-back]
            if extent not in (1, shape[-back]):
                return None
            result += (at if extent != 1 else 0) * stride
            stride *= extent
    return result


def replaced(tree: Any, values: Iterator) -> Any:
    """The arguments with each tensor exchanged, in order."""
    if isinstance(tree, torch.Tensor):
        return next(values)
    if isinstance(tree, (list, tuple)):
        return type(tree)([replaced(item, values) for item in tree])
    if isinstance(tree, dict):
        return {key: replaced(item, values) for key, item in tree.items()}
    return tree


def tensors_in(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from tensors_in(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from tensors_in(item)


def scalars_in(tree: Any) -> Iterator[float]:
    if isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from scalars_in(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from scalars_in(item)


class Operation:
    """One executed operation with the values that it read and wrote."""

    def __init__(self, function: Any, arguments: tuple, sources: list, place: Optional[Place]) -> None:
        self.function = function
        self.arguments = arguments
        self.operands = [tensor.detach().clone() for tensor in tensors_in(arguments)]
        self.sources = sources
        self.place = place
        self.results: list[torch.Tensor] = []
        self.keys: list[tuple] = []
        self.kept: Any = None  # keeps the memory, so that no later tensor takes its place
        self.before: Any = None  # for what is written in place: the operation before

    @property
    def name(self) -> str:
        return self.function.__name__.split(".")[0].strip("_")

    def again(self, operands: list) -> list[torch.Tensor]:
        args, kwargs = replaced(self.arguments, iter([tensor.clone() for tensor in operands]))
        return list(tensors_in(self.function(*args, **kwargs)))

    def makes_sentinels(self) -> bool:
        """Writes an infinity that stands in the source text."""
        given = [value for value in scalars_in(self.arguments) if not math.isfinite(value)]
        return bool(given) or not self.operands

    def bears(self, which: int, at: int, operands: list) -> bool:
        return not bool(torch.isfinite(self.again(operands)[which].reshape(-1)[at]))

    def responsible(self, which: int, at: int) -> list[tuple[int, int]]:
        """The non-finite operand elements without which this result would be finite; none where it is born here."""
        bad = [bad_elements(operand) for operand in self.operands]
        if not any(len(elements) for elements in bad):
            return []
        healthy = [self._mended(operand, elements) for operand, elements in zip(self.operands, bad)]
        try:
            if self.bears(which, at, healthy):
                return []
            found = []
            for index, (operand, elements) in enumerate(zip(self.operands, bad)):
                near = aligned(at, tuple(self.results[which].shape), operand)
                order = [element for element in elements.tolist() if element == near] or elements.tolist()[:64]
                for element in order:  # which of them suffices to spoil the result
                    spoilt = list(healthy)
                    rest = elements[elements != element]
                    spoilt[index] = self._mended(operand, rest)
                    if self.bears(which, at, spoilt):
                        found.append((index, element))
                        break
        except Exception:  # an operation that cannot be repeated: take what is aligned, or any
            found = []
        return found or [(index, int(elements[0])) for index, elements in enumerate(bad) if len(elements)]

    @staticmethod
    def _mended(operand: torch.Tensor, elements: torch.Tensor) -> torch.Tensor:
        if not len(elements):
            return operand
        whole = operand.contiguous().clone()
        whole.view(-1)[elements] = 0.5  # inside the domain of log, sqrt, atanh, ...
        return whole


class Birth(NamedTuple):
    operation: Operation
    which: int
    at: int


class Tracer(TorchDispatchMode):
    """Writes down every operation below autograd, with its values."""

    def __init__(self, names: dict) -> None:
        super().__init__()
        self.names = names  # of tensors that come from outside
        self.producers: dict = {}
        self.in_storage: dict = {}
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        arguments = (args, kwargs or {})
        read = [place_key(tensor) for tensor in tensors_in(arguments)]
        operation = Operation(function, arguments, [self.producers.get(key) or self.names.get(key) for key in read],
                              place_here())
        result = function(*args, **(kwargs or {}))
        writes = function._schema.is_mutable
        operation.kept = result
        for tensor in tensors_in(result):
            key = place_key(tensor)
            if not writes and key in read and operation.name in CARRIERS:
                continue  # another name for the same elements
            operation.results.append(tensor.detach().clone())
            operation.keys.append(key)
            concerned = {key}
            if writes:  # whoever looks at this memory sees the change
                concerned |= self.in_storage.get(key[0], set())
                operation.before = {other: self.producers.get(other) for other in concerned}
            for other in concerned:
                self.producers[other] = (operation, len(operation.results) - 1)
            self.in_storage.setdefault(key[0], set()).add(key)
        return result

    def origin(self, source: Any, key: Optional[tuple], at: int) -> Optional[Birth]:
        """Where the non-finite element came into being; None where it came from outside."""
        seen: set = set()
        stack: list = []  # (birth, if it is made of sentinels; the guilty operands not looked into yet)
        waiting: Any = (source, key, at)
        while waiting or stack:
            if waiting:
                entered = self._enter(*waiting, seen)
                waiting = None
                if isinstance(entered, Birth):
                    return entered
                if entered is not None:
                    stack.append(entered)
                continue
            birth, made_of_sentinels, guilty = stack[-1]
            if guilty:
                index, element = guilty.pop(0)
                waiting = (birth.operation.sources[index], None, element)
                continue
            stack.pop()
            if made_of_sentinels:
                return birth
        return None

    @staticmethod
    def _enter(source: Any, key: Optional[tuple], at: int, seen: set) -> Any:
        """A birth, or where to go on looking: (this operation, whether sentinels became NaN here, operands)."""
        while isinstance(source, tuple):
            operation, which = source
            value = operation.results[which].reshape(-1)
            if operation.before is not None and key is not None and key != operation.keys[which]:
                # Written through another view: this one's element may be older.
                elements = bad_elements(operation.results[which])
                if not len(elements):
                    source = operation.before.get(key)
                    continue
                at = int(elements[0])
            if (id(operation), which, at) in seen or at >= value.numel() or bool(torch.isfinite(value[at])):
                return None
            seen.add((id(operation), which, at))
            birth = Birth(operation, which, at)
            guilty = operation.responsible(which, at)
            if not guilty:
                return None if operation.makes_sentinels() else birth
            was_nan = any(bool(operation.operands[index].reshape(-1)[element].isnan()) for index, element in guilty)
            return birth, bool(value[at].isnan()) and not was_nan, guilty
        return None

    def passed_on(self, source: Any, at: int) -> Optional[Birth]:
        """The first operation that a non-finite input went through."""
        last = None
        while isinstance(source, tuple):
            operation, which = source
            last = Birth(operation, which, at)
            guilty = operation.responsible(which, at)
            if not guilty:
                break
            source, at = operation.sources[guilty[0][0]], guilty[0][1]
        return last

    def label(self, source: Any) -> str:
        while isinstance(source, tuple) and source[0].name in CARRIERS and source[0].sources:
            source = source[0].sources[0]
        if isinstance(source, tuple):
            return source[0].name
        return source or ""

    def operand_text(self, birth: Birth) -> str:
        """The operation at its bad element: `0 (mask) x inf (exp) = nan`."""
        operation, which, at = birth
        result = operation.results[which]
        texts = []
        operands = iter(range(len(operation.operands)))
        flat = [*operation.arguments[0], *operation.arguments[1].values()]
        for argument in flat:
            if isinstance(argument, torch.Tensor):
                texts.append(self._element(operation, next(operands), result, at))
            elif isinstance(argument, (list, tuple)) and any(True for _ in tensors_in(argument)):
                texts += [self._element(operation, next(operands), result, at) for _ in tensors_in(argument)]
            elif isinstance(argument, (int, float)) and not isinstance(argument, bool) and operation.name in POINTWISE:
                texts.append(number_text(argument))
        outcome = number_text(result.reshape(-1)[at])
        symbol = SYMBOLS.get(operation.name)
        if symbol and len(texts) >= 2:
            return f"{texts[0]} {symbol} {texts[1]} = {outcome}"
        return f"{operation.name}({', '.join(texts[:3])}) = {outcome}"

    def _element(self, operation: Operation, index: int, result: torch.Tensor, at: int) -> str:
        operand = operation.operands[index]
        name = self.label(operation.sources[index])
        name = f" ({name})" if name else ""
        near = aligned(at, tuple(result.shape), operand)
        same = near is not None and (operand.shape == result.shape or operation.name in POINTWISE)
        if same and operation.name not in ROWWISE:
            return number_text(operand.reshape(-1)[near]) + name
        values = operand.detach().reshape(-1)
        if operation.name in ROWWISE and same and operand.dim():
            values = operand.reshape(-1, operand.shape[-1])[near // operand.shape[-1]]
        if values.numel() == 0:
            return "no element" + name
        if not values.dtype.is_floating_point:
            return f"{values.numel()} values{name}"
        shown = [number_text(value) for value in values[:3].tolist()]
        if values.numel() > 3:
            least, most = number_text(values.min()), number_text(values.max())
            shown = [f"{values.numel()} values" + (f" of {least}" if least == most else f" from {least} to {most}")]
        return ", ".join(shown) + name


POINTWISE = {"add", "sub", "mul", "div", "where", "pow", "clamp", "minimum", "maximum", "masked_fill", "xlogy",
             "lerp", "addcmul", "addcdiv", "logaddexp", "rsub"}
ROWWISE = {"softmax", "log_softmax", "logsumexp", "cumsum", "logcumsumexp", "cumprod"}


# --- the guilty line: backward ----------------------------------------------------------------------

# Node, outgoing gradient -> how its factor is written; names are those of the node's saved tensors.
FACTORS = {
    "Exp": ("x", "result", "exp"), "Expm1": ("x", "result", "expm1"), "Exp2": ("x", "result", "exp2"),
    "Log": ("/", "self", ""), "Log2": ("/", "self", ""), "Log10": ("/", "self", ""),
    "Log1P": ("/ 1 +", "self", ""), "Sqrt": ("/ 2 x", "result", "sqrt"),
    "Rsqrt": ("x -1/2 x", "result", "rsqrt cubed"), "Reciprocal": ("x -", "result", "reciprocal squared"),
    "Tanh": ("x 1 -", "result", "tanh squared"), "Pow": ("through a power of", "self", ""),
}


class Passage(NamedTuple):
    """A node as the backward went through it."""

    order: int
    incoming: tuple
    outgoing: tuple


class BackwardTrace:
    """The autograd graph of one loss, with the gradients that went along its edges."""

    def __init__(self, root: Any) -> None:
        self.passages: dict = {}
        self.above: dict = collections.defaultdict(list)  # node -> (node nearer to the loss, outgoing, incoming)
        self._handles = []
        waiting, seen = [root], {root}
        while waiting:
            node = waiting.pop()
            self._handles.append(node.register_hook(functools.partial(self._passed, node)))
            for outgoing, (following, incoming) in enumerate(node.next_functions):
                if following is None:
                    continue
                self.above[following].append((node, outgoing, incoming))
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)

    def _passed(self, node: Any, outgoing: tuple, incoming: tuple) -> None:
        keep = lambda tensors: tuple(None if tensor is None else tensor.detach().clone() for tensor in tensors)
        self.passages[node] = Passage(len(self.passages), keep(incoming), keep(outgoing))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def births(self, node: Any, incoming: int, at: int) -> list[tuple]:
        """(order, node, outgoing, element) of the nodes in which a bad incoming gradient of `node` was born."""
        found, seen, waiting = [], set(), [(node, incoming, at)]
        while waiting:
            lower, number, at = waiting.pop()
            received = self.passages[lower].incoming[number]
            for upper, outgoing, lands in self.above[lower]:
                passage = self.passages.get(upper)
                if lands != number or passage is None or passage.outgoing[outgoing] is None:
                    continue
                element = self._same_element(passage.outgoing[outgoing], received, at)
                if element is None or (upper, outgoing) in seen:
                    continue
                seen.add((upper, outgoing))
                guilty = self._responsible(upper, passage, outgoing, element)
                if not guilty:
                    found.append((passage.order, upper, outgoing, element))
                waiting += [(upper, *pair) for pair in guilty]
        return found

    @staticmethod
    def _same_element(gradient: torch.Tensor, received: Any, at: int) -> Optional[int]:
        """The element of an outgoing gradient that goes into a received one, which may have been summed."""
        if received is None or gradient.shape == received.shape:
            flat = gradient.reshape(-1)
            return at if at < flat.numel() and not bool(torch.isfinite(flat[at])) else None
        for element in bad_elements(gradient).tolist()[:4096]:
            if aligned(element, tuple(gradient.shape), received) == at:
                return element
        return None

    @staticmethod
    def _responsible(node: Any, passage: Passage, outgoing: int, at: int) -> list[tuple[int, int]]:
        """The bad incoming elements without which the outgoing one would be finite."""
        bad = [(number, element) for number, tensor in enumerate(passage.incoming) if tensor is not None
               for element in bad_elements(tensor).tolist()[:4096]]
        if not bad:
            return []

        def spoils(kept: Optional[tuple]) -> bool:
            given = []
            for number, tensor in enumerate(passage.incoming):
                if tensor is None:
                    raise ValueError("an undefined gradient cannot be passed")
                whole = torch.where(torch.isfinite(tensor), tensor, torch.ones_like(tensor)).contiguous()
                if kept is not None and kept[0] == number:
                    whole.view(-1)[kept[1]] = tensor.reshape(-1)[kept[1]]
                given.append(whole)
            result = (node.apply if hasattr(node, "apply") else node)(*given)
            result = result if isinstance(result, tuple) else (result,)
            return not bool(torch.isfinite(result[outgoing].detach().reshape(-1)[at]))

        try:
            if spoils(None):
                return []
            same = [pair for pair in bad if passage.incoming[pair[0]].shape == passage.outgoing[outgoing].shape
                    and pair[1] == at]
            found = [pair for pair in (same or bad[:64]) if spoils(pair)]
            return found or bad[:1]
        except Exception:  # a node that cannot be asked twice
            return bad[:1]


class Guilt(NamedTuple):
    stage: str  # forward or backward
    place: Place
    operation: str
    text: str


def _python_node(node: Any) -> bool:
    return hasattr(node, "apply") and isinstance(node, torch.autograd.function.FunctionCtx)


def _backward_text(node: Any, passage: Passage, outgoing: int, at: int, tracer: Tracer) -> tuple[str, str]:
    """The name of the operation, and its backward at the bad element."""
    name = re.sub(r"(Backward)?\d*$", "", node.name().split("::")[-1])
    gradient = passage.outgoing[outgoing]
    shape = tuple(gradient.shape)
    incoming = passage.incoming[0]
    upstream = ""
    if incoming is not None:
        near = aligned(at, shape, incoming)
        upstream = f"{number_text(incoming.reshape(-1)[near])} (upstream)" if near is not None else \
            "upstream " + _extent_text(incoming)

    def saved(attribute: str) -> Any:
        try:
            value = getattr(node, "_saved_" + attribute)
        except Exception:
            return None
        return value

    def at_element(value: Any, what: str = "") -> str:
        if not isinstance(value, torch.Tensor):
            return number_text(value)
        label = what or tracer.label(tracer.producers.get(place_key(value)) or tracer.names.get(place_key(value)))
        near = aligned(at, shape, value)
        text = number_text(value.detach().reshape(-1)[near]) if near is not None else _extent_text(value.detach())
        return text + (f" ({label})" if label else "")

    outcome = f" = {number_text(gradient.reshape(-1)[at])}"
    if name in FACTORS and saved(FACTORS[name][1]) is not None:
        symbol, attribute, what = FACTORS[name]
        return name.lower(), f"{upstream} {symbol} {at_element(saved(attribute), what)}{outcome}"
    if name == "Mul" and saved("self" if outgoing else "other") is not None:
        return "mul", f"{upstream} x {at_element(saved('self' if outgoing else 'other'))}{outcome}"
    if name == "Div" and saved("other") is not None:
        if outgoing == 0:
            return "div", f"{upstream} / {at_element(saved('other'))}{outcome}"
        if saved("self") is not None:
            return "div", f"{upstream} x -{at_element(saved('self'))} / {at_element(saved('other'))} squared{outcome}"
    operands = []
    for attribute in sorted(entry[len("_saved_"):] for entry in dir(node) if entry.startswith("_saved_")):
        value = saved(attribute)
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point or isinstance(value, float):
            operands.append(f"{attribute} {at_element(value)}")
    label = {"LogSoftmax": "log_softmax"}.get(name, name.lower())
    return label, f"{upstream} through {label}" + (f" with {', '.join(operands[:3])}" if operands else "") + outcome


def _extent_text(tensor: torch.Tensor) -> str:
    values = tensor.reshape(-1)
    if values.numel() == 0:
        return "of no element"
    if values.numel() <= 3:
        return ", ".join(number_text(value) for value in values.tolist())
    return f"{number_text(values.min())} to {number_text(values.max())}"


def find_guilt(inputs: Inputs, outputs: list[str], subject: str, upstream: float) -> Optional[Guilt]:
    """Runs the step again with everything written down, and says where its first non-finite number begins."""
    names = {place_key(tensor): name for name, tensor in inputs.given.items() if tensor.numel()}
    tracer = Tracer(names)
    starts = {name: tensor.grad_fn for name, tensor in inputs.given.items() if name in inputs.leaves}
    kept = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(True, check_nan=False)  # each node remembers its line
    try:
        with tracer:
            result = inputs.call()
    finally:
        torch.autograd.set_detect_anomaly(*kept)
    loss, holder = loss_of(result, subject, outputs, bool(inputs.leaves))

    def forward(tensor: torch.Tensor) -> Optional[Guilt]:
        elements = bad_elements(tensor)
        if not len(elements):
            return None
        key, at = place_key(tensor), int(elements[0])
        source = tracer.producers.get(key)
        birth = tracer.origin(source, key, at) or tracer.passed_on(source, at)
        if birth is None or birth.operation.place is None:
            return None
        return Guilt("forward", birth.operation.place, birth.operation.name, tracer.operand_text(birth))

    if loss is not None:
        guilt = forward(loss)
        if guilt is not None:
            return guilt
        if inputs.leaves and loss.requires_grad:
            guilt = _backward_guilt(inputs, loss, starts, tracer, upstream)
            if guilt is not None:
                return guilt
    for name in outputs:
        value = returned(holder, name)
        guilt = forward(value) if value is not None else None
        if guilt is not None:
            return guilt
    return None


def _backward_guilt(inputs: Inputs, loss: Any, starts: dict, tracer: Tracer, upstream: float) -> Optional[Guilt]:
    trace = BackwardTrace(loss.grad_fn)
    try:
        gradients = torch.autograd.grad(loss, list(inputs.leaves.values()), torch.full_like(loss, upstream),
                                        retain_graph=True, allow_unused=True)
    finally:
        trace.close()
    found: list = []
    for name, gradient in zip(inputs.leaves, gradients):
        if gradient is None or starts[name] not in trace.passages:
            continue
        elements = bad_elements(gradient)
        if len(elements):
            found += trace.births(starts[name], 0, int(elements[0]))
    for _, node, outgoing, at in sorted(found, key=lambda birth: birth[0]):
        passage = trace.passages[node]
        if _python_node(node):
            guilt = _custom_guilt(node, passage, outgoing, at, tracer)
            if guilt is not None:
                return guilt
        place = place_of_node(node)
        if place is not None:
            operation, text = _backward_text(node, passage, outgoing, at, tracer)
            return Guilt("backward", place, operation, text)
    return None


def _custom_guilt(node: Any, passage: Passage, outgoing: int, at: int, tracer: Tracer) -> Optional[Guilt]:
    """Inside the backward of a torch.autograd.Function of the subject's."""
    inner = Tracer({**tracer.names})
    inner.names.update({place_key(tensor): "upstream" for tensor in passage.incoming if tensor is not None})
    for tensor in getattr(node, "saved_tensors", ()):
        if isinstance(tensor, torch.Tensor):
            label = tracer.label(tracer.producers.get(place_key(tensor)) or tracer.names.get(place_key(tensor)))
            inner.names[place_key(tensor)] = label or "saved"
    try:
        with inner:
            result = node.apply(*passage.incoming)
    except Exception:
        return None
    result = result if isinstance(result, tuple) else (result,)
    gradient = result[outgoing]
    if not isinstance(gradient, torch.Tensor):
        return None
    key = place_key(gradient)
    source = inner.producers.get(key)
    birth = inner.origin(source, key, at) or inner.passed_on(source, at)
    if birth is None or birth.operation.place is None:
        return None
    return Guilt("backward", birth.operation.place, birth.operation.name, inner.operand_text(birth))


# --- the conversation -------------------------------------------------------------------------------

_IDENTITY = re.compile(rb'"id":"([^"\\]*)"')
_METADATA = re.compile(rb'\{"__metadata__":(\{"[^{}]*"\})([,}])')


class Worker:
    """Answers requests; knows one subject at a time."""

    def __init__(self, entry: Any = None, contained: bool = False) -> None:
        self._entry = entry  # a live callable, or the text of an entry
        self._contained = contained  # own process: even an interrupt raised inside the subject is an answer
        self._encoder = Encoder()
        self._plans: dict = {}
        self._fields: dict = {}
        self._binding: Optional[Binding] = None
        self._loss: Optional[Loss] = None
        self._device: Any = None
        self._process = os.getpid()

    def answer(self, frame: bytes) -> bytes:
        identity = None
        try:
            end = header_end(frame)
            header = frame[8:end]
            key = header
            match = _IDENTITY.search(header)
            if match is not None:
                identity = match.group(1).decode()
                key = header[:match.start()] + header[match.end():]
            plan, size = self._plans.get(key, (None, 0))
            if plan is None or len(frame) - end != size:
                size = len(frame) - end
                metadata, table = self._read(header, size)
                identity = metadata.get("id")
                operation = metadata.get("op")
                if operation == "hello":
                    return self._hello(metadata)
                if operation != "step":
                    raise Trouble(f"unknown op {operation!r}; protocol {PROTOCOL} has hello and step")
                if self._binding is None:
                    raise Trouble("a step came before a successful hello")
                fields = self._fields.get((table, size)) or self._lay_out(table, size)
                try:
                    plan = StepPlan(metadata, fields, self._binding)
                except Trouble:
                    raise
                except Exception as error:  # the constructor of a subject that is a class
                    return self._raised(identity, error)
                if len(self._plans) > CACHED:
                    self._plans.clear()
                self._plans[key] = (plan, size)
            return self._step(plan, identity, memoryview(frame)[end:])
        except Trouble as error:
            message = _line(error)
        except Exception as error:  # nothing may end the conversation without a word
            message = f"the worker itself failed: {type(error).__name__}: {_line(error)}"
        return self._encoder.frame("trouble", identity, (("message", message),), [])

    @staticmethod
    def _read(header: bytes, size: int) -> tuple[dict, bytes]:
        """Metadata, and the header without them: tensors often lie as they did in an earlier step."""
        match = _METADATA.match(header)
        if match is not None:
            try:
                metadata = json.loads(match.group(1), object_pairs_hook=_no_twice)
                if b'"__metadata__"' not in header[match.end():]:
                    return metadata, b"{" + header[match.end():] if match.group(2) == b"," else b"{}"
            except ValueError:  # a brace inside a string
                pass
        return parse_header(header, size)[0], header

    def _lay_out(self, table: bytes, size: int) -> FieldsPlan:
        fields = FieldsPlan(parse_header(table, size)[1], self._loss)
        if len(self._fields) > CACHED:
            self._fields.clear()
        self._fields[(table, size)] = fields
        return fields

    def _hello(self, metadata: dict) -> bytes:
        self._plans.clear()
        self._fields.clear()
        self._binding = None
        if metadata.get("protocol") != str(PROTOCOL):
            raise Trouble(f"protocol {metadata.get('protocol')!r} is not spoken here; this worker speaks {PROTOCOL}")
        check_torch()
        torch.set_num_threads(max(1, int(metadata.get("threads", "1"))))
        self._device = None if metadata.get("device", "cpu") == "cpu" else _device(metadata["device"])
        paths = [os.path.abspath(folder) for folder in json.loads(metadata.get("path", "[]"))]
        for folder in reversed(paths):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        loss = Loss(metadata)
        entry, versions = self._entry, {}
        if entry is None or isinstance(entry, str):
            entry, name, versions = load(entry or metadata.get("entry", ""), paths)
        else:
            name = getattr(entry, "__name__", type(entry).__name__)
        subject = Subject(entry, name, paths)
        binding = Binding(subject, loss, json.loads(metadata.get("arguments", "{}")))
        self._loss, self._binding = loss, binding
        text = lambda value: json.dumps(value)
        reply = [("protocol", str(PROTOCOL)),
                 ("versions", text({"python": platform.python_version(), "torch": torch.__version__, **versions})),
                 ("file", subject.shown(subject.file)), ("line", str(subject.line)), ("code", subject.code),
                 ("arguments", text(binding.sources())), ("options", text(binding.reaching("option:"))),
                 ("reduction", str(int(any(source == "reduction" for source in binding.sources().values())))),
                 ("facts", text(binding.reaching("fact:")))]
        if binding.tied():
            reply.append(("tied", text(binding.tied())))
        if self._contained:
            gc.collect()
            gc.freeze()  # what was imported stays; looking through it again and again would cost time
        return self._encoder.frame("hello", None, tuple(reply), [])

    def _step(self, plan: StepPlan, identity: Optional[str], data: memoryview) -> bytes:
        torch.set_grad_enabled(True)
        inputs = None
        try:
            inputs = Inputs(plan, data, self._device)
            subject = self._binding.subject.name
            loss, holder = loss_of(inputs.call(), subject, self._loss.outputs, bool(inputs.leaves))
            gradients = ()
            if inputs.leaves:
                upstream = None if plan.upstream == 1.0 else torch.full_like(loss, plan.upstream)
                gradients = torch.autograd.grad(loss, list(inputs.leaves.values()), upstream, allow_unused=True)
            tensors = [] if loss is None else [("loss", sendable(loss))]
            if holder is not loss:
                for name in self._loss.outputs:
                    value = returned(holder, name)
                    if value is not None:
                        tensors.append((name, sendable(value)))
            without = []
            for name, gradient in zip(inputs.leaves, gradients):
                if gradient is None:
                    without.append(name)
                else:
                    tensors.append((f"gradient.{name}", gradient))
            metadata = [("mutated", _names(inputs.mutated())), ("without_gradient", _names(without))]
            if plan.explain and not all(finite(tensor) for _, tensor in tensors):
                guilt = self._guilt(plan, data)
                if guilt is not None:
                    metadata.append(("guilty", guilt))
            reply = self._encoder.frame("result", identity, tuple(metadata), tensors)
        except BaseException as error:
            self._same_process()
            if isinstance(error, KeyboardInterrupt) and not self._contained:
                raise
            return self._raised(identity, error)
        self._same_process()
        return reply

    def _guilt(self, plan: StepPlan, data: memoryview) -> Optional[str]:
        try:
            guilt = find_guilt(Inputs(plan, data, self._device), self._loss.outputs, self._binding.subject.name,
                               plan.upstream)
        except Exception as error:
            print(f"the guilty line was not found: {type(error).__name__}: {error}", file=sys.stderr)
            return None
        if guilt is None:
            return None
        file = self._binding.subject.shown(guilt.place.file)
        code = source_line(guilt.place.file, guilt.place.line)
        where = f"{os.path.basename(file)}:{guilt.place.line}"
        return json.dumps({"pass": guilt.stage, "file": file, "line": guilt.place.line, "code": code,
                           "operation": guilt.operation, "text": f"{guilt.text} at {where}: {code}"})

    def _same_process(self) -> None:
        if os.getpid() != self._process:  # a child that the subject forked and let return
            os._exit(0)

    def _raised(self, identity: Optional[str], error: BaseException) -> bytes:
        subject = self._binding.subject
        file, line = subject.file, subject.line
        if not isinstance(error, BadResult):
            frames = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
            theirs = [frame for frame in frames if frame[0] != _OWN_FILE and not foreign(frame[0])]
            own = [frame for frame in theirs if frame[0] == subject.file]
            if own or theirs:
                file, line = (own or theirs)[-1]
        code = source_line(file, line)
        return self._encoder.frame("raised", identity, (
            ("type", type(error).__name__), ("message", _line(error)), ("file", subject.shown(file)),
            ("line", str(line)), ("code", code)), [])


def _names(names: list[str]) -> str:
    return json.dumps(names) if names else "[]"


def _line(error: BaseException) -> str:
    """The message of an exception as one clean line of bounded length."""
    try:
        text = str(error)
    except BaseException:
        text = f"its message could not be read ({type(error).__name__})"
    text = clean(" ".join(text.split()))
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."


def _device(name: str) -> Any:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        return device
    except Exception as error:
        raise Trouble(f"device {name!r} is not usable with this torch ({_line(error)}); write device = \"cpu\"") from None


def check_torch() -> None:
    if torch is None:
        raise Trouble(f"torch cannot be imported by {sys.executable} ({_NO_TORCH}); install torch there, or name "
                      "the interpreter that has it")
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < LEAST_TORCH:
        raise Trouble(f"torch {torch.__version__} is too old; {'.'.join(map(str, LEAST_TORCH))} or newer is needed")


def read_frame(stream: io.BufferedReader) -> Optional[bytes]:
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    if size > LONGEST_FRAME:
        raise Trouble(f"a frame of {size} bytes is too long")
    frame = stream.read(size)
    return frame if len(frame) == size else None


def write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def serve(entry: Any, request_fd: int, reply_fd: int, contained: bool = False) -> None:
    """Answers requests until the other side closes. `entry`: a live callable, the text of an entry, or None for hello's."""
    worker = Worker(entry, contained)
    threads = torch.get_num_threads() if torch is not None and not contained else 1
    paths = list(sys.path)
    stream = io.BufferedReader(io.FileIO(request_fd, "rb", closefd=False), 1 << 16)
    try:
        while True:
            try:
                frame = read_frame(stream)
            except Trouble as error:  # the next frame cannot be found any more
                write_all(reply_fd, Encoder().frame("trouble", None, (("message", str(error)),), []))
                return
            if frame is None:
                return
            write_all(reply_fd, worker.answer(frame))
    except BrokenPipeError:
        return
    finally:
        if not contained and torch is not None:
            torch.set_num_threads(threads)
            sys.path[:] = paths


def main() -> int:
    # The name that users import is this one and not __main__.
    serve(None, *_DESCRIPTORS, contained=True)
    return 0


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    os._exit(status)  # no thread or exit hook of the subject's keeps a finished worker alive
