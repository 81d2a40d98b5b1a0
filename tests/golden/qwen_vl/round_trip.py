#!/usr/bin/env python3
"""What transformers computes from a checkpoint folder: proves that a folder written by another program is a model it loads.

usage: round_trip.py FOLDER BATCH.safetensors [--out LOGITS.safetensors] [--compare OTHER_FOLDER_OR_FILE] [--dtype float32|bfloat16|float64]
One JSON line: parameters, loss, a checksum of the logits, and with --compare the largest difference of logits from those
of another folder (computed here) or file (tensor `logits`, as `qwen_vl verify` writes it). Exit 1 when the folder lacks
or repeats a tensor. float64 is true fp64, as in the golden cases; lower precisions are transformers as it is, with sdpa.
"""

import argparse
import contextlib
import hashlib
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

from fp64 import true_fp64


def load(folder, dtype):
    """The model and what was wrong with its files."""
    attention = "eager" if dtype == torch.float64 else "sdpa"
    model, told = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation=attention, output_loading_info=True)
    wrong = {key: sorted(map(str, value)) for key, value in told.items() if value}
    return model.eval(), wrong


def logits_of(folder, batch, dtype):
    with true_fp64() if dtype == torch.float64 else contextlib.nullcontext(), torch.no_grad():
        model, wrong = load(folder, dtype)
        ids = batch["input_ids"]
        types = (ids == model.config.image_token_id).int() + 2 * (ids == model.config.video_token_id).int()
        out = model(**batch, mm_token_type_ids=types, use_cache=False)
        return out.logits, out.loss.item(), sum(one.numel() for one in model.parameters()), wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("batch", type=Path)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--compare", type=Path)
    arguments.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float64"])
    given = arguments.parse_args()
    transformers.utils.logging.disable_progress_bar()
    dtype = getattr(torch, given.dtype)
    batch = load_file(given.batch)
    logits, loss, parameters, wrong = logits_of(given.folder, batch, dtype)
    report = {"parameters": parameters, "loss": loss, "logits_sha256": hashlib.sha256(logits.float().numpy().tobytes()).hexdigest()[:16], "wrong": wrong}
    if given.compare:
        other = logits_of(given.compare, batch, dtype)[0] if given.compare.is_dir() else load_file(given.compare)["logits"]
        valid = batch.get("attention_mask", torch.ones_like(batch["input_ids"])).bool()
        difference = (logits.double() - other.double())[valid].abs().max().item()
        report |= {"largest_difference": difference, "relative": difference / logits[valid].abs().max().item(), "equal": bool(torch.equal(logits[valid], other.to(dtype)[valid]))}
    if given.out:
        save_file({"logits": logits.contiguous()}, given.out)
    print(json.dumps(report))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
