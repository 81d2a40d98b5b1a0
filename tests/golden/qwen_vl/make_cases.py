#!/usr/bin/env python3
"""Makes the golden cases of Qwen2.5-VL: transformers in true fp64, proven by an independent implementation.

usage: make_cases.py [--only CASE[,CASE]] [--out FOLDER]     (README.md: environment, what each file holds)
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import independent
from cases import CASES
from fp64 import check_tables, true_fp64

STEPS, LEARNING_RATE, DECAY, BETAS, EPSILON = 3, 1e-3, 0.01, (0.9, 0.999), 1e-8
AGREE = 1e-12


def file_name(name):
    """Names in the checkpoint's files (the hub's) for names inside transformers 5."""
    return name.removeprefix("model.") if name.startswith("model.visual.") else name.replace("model.language_model.", "model.")


def flat_form(config):
    """config.json as the published checkpoints have it: the language model's fields at the top."""
    text = dict(config["text_config"])
    rope = text.pop("rope_parameters")
    text.pop("model_type")
    out = {key: value for key, value in config.items() if key not in ("text_config", "flat")}
    vision = dict(config["vision_config"], in_chans=config["vision_config"]["in_channels"], spatial_patch_size=config["vision_config"]["patch_size"])
    del vision["in_channels"]   # as published; transformers 5 then takes its default, 3
    assert vision["in_chans"] == 3
    out.update(text, vision_config=vision, architectures=["Qwen2_5_VLForConditionalGeneration"], torch_dtype="float32", use_sliding_window=False, attention_dropout=0.0,
               rope_theta=rope["rope_theta"], rope_scaling={"type": "mrope", "mrope_section": rope["mrope_section"]})
    return out


def nested_form(config):
    return {key: value for key, value in config.items() if key != "flat"}


def randomize(model, random):
    """Weights large enough that every attention and every gradient matters; biases and norms random, too. All exact in fp32."""
    for name, parameter in sorted(model.named_parameters()):
        values = random.standard_normal(parameter.shape)
        if name.endswith("bias"):
            values *= 0.1
        elif parameter.dim() == 1:
            values = 1 + 0.2 * values
        elif "embed_tokens" in name:
            values *= 0.4
        else:
            values *= 1.2 / np.sqrt(np.prod(parameter.shape[1:]))
        parameter.data.copy_(torch.from_numpy(values.astype(np.float32)))


def build(config, random):
    """The model, in fp64 with eager attention, as transformers reads it from the config.json that is committed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps((flat_form if config["flat"] else nested_form)(config)))
        parsed = transformers.Qwen2_5_VLConfig.from_pretrained(folder)
    parsed._attn_implementation = "eager"
    model = transformers.Qwen2_5_VLForConditionalGeneration(parsed).double().train()
    randomize(model, random)
    check_tables(model)
    return model


def write_folder(model, config, folder):
    """config.json and model.safetensors; proves that transformers reads the same model from it."""
    with tempfile.TemporaryDirectory() as scratch:
        model.save_pretrained(scratch)
        saved = load_file(Path(scratch, "model.safetensors"))
        nested = json.loads(Path(scratch, "config.json").read_text())
    ours = {file_name(name): parameter.data for name, parameter in model.named_parameters()}
    assert saved.keys() == ours.keys(), saved.keys() ^ ours.keys()
    assert all(torch.equal(saved[name], ours[name]) and torch.equal(one, one.to(torch.float32).double()) for name, one in ours.items())
    nested["dtype"] = "float32"
    Path(folder, "config.json").write_text(json.dumps(flat_form(config) if config["flat"] else nested, indent=2) + "\n")
    save_file({name: one.to(torch.float32) for name, one in sorted(saved.items())}, Path(folder, "model.safetensors"), {"format": "pt"})
    again = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float64)
    assert all(torch.equal(one, model.state_dict()[name]) for name, one in again.state_dict().items())


def inputs_of(model, batch):
    """What transformers wants on top: without the token types it silently uses positions on one axis."""
    ids = batch["input_ids"]
    types = (ids == model.config.image_token_id).int() + 2 * (ids == model.config.video_token_id).int()
    return {**batch, "mm_token_type_ids": types, "use_cache": False}


def watch(model):
    """Collects what the first forward shows on its way: vision tokens by call, and position ids."""
    seen = {"vision": [], "positions": None}
    hooks = [
        model.model.visual.register_forward_hook(lambda _m, _i, out: seen["vision"].append(out.pooler_output.detach())),
        model.model.language_model.rotary_emb.register_forward_pre_hook(lambda _m, given: seen.update(positions=given[1])),
    ]
    return seen, lambda: [hook.remove() for hook in hooks]


def stages(model):
    """(name, parameters) of the two modules that are stepped as wholes; a tied head belongs to the embedding."""
    named = list(model.named_parameters())
    return [("vision", [(n, p) for n, p in named if n.startswith("model.visual.")]), ("language", [(n, p) for n, p in named if not n.startswith("model.visual.")])]


def run(model, batch):
    """All expected tensors of one case."""
    given = inputs_of(model, batch)
    seen, unwatch = watch(model)
    out = model(**given)
    unwatch()
    out.loss.backward()
    used = [p for _, named in stages(model) for _, p in named if all(q.grad is not None for _, q in named)]
    assert all(p.grad is None or any(p is q for q in used) for p in model.parameters()), "a module has gradients in part"
    expected = {"loss": out.loss.detach(), "logits": out.logits.detach().clone()}
    expected["position_ids"] = seen["positions"].expand(3, *batch["input_ids"].shape).contiguous().clone()
    expected["vision_tokens"] = torch.cat(seen["vision"]) if seen["vision"] else torch.zeros(0, model.config.text_config.hidden_size)
    expected["grad_norm"] = torch.stack([p.grad.square().sum() for p in used]).sum().sqrt()
    for name, p in model.named_parameters():
        expected["grad." + file_name(name)] = torch.zeros_like(p.data) if p.grad is None else p.grad.clone()
    optimizer = torch.optim.AdamW(used, lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY, foreach=False)
    for step in range(STEPS):
        if step:
            optimizer.zero_grad()
            model(**given).loss.backward()
        optimizer.step()
    for name, p in model.named_parameters():
        expected["param." + file_name(name)] = p.data.clone()
    if "attention_mask" in batch:
        expected["logits"] *= batch["attention_mask"].unsqueeze(-1)
        expected["logits_valid"] = batch["attention_mask"].clone()
    return expected


def own(config, weights, batch):
    """The same by the independent implementation."""
    w, state, expected = dict(weights), {}, {}
    for step in range(1, STEPS + 1):
        leaves = {name: one.clone().requires_grad_() for name, one in w.items()}
        loss, logits, tokens = independent.forward(leaves, config, batch)
        gradients = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True), strict=True))
        if step == 1:
            expected.update({"loss": loss.detach(), "logits": logits.detach(), "vision_tokens": tokens.detach(), "position_ids": independent.positions(config, batch)})
            expected.update({"grad." + name: torch.zeros_like(w[name]) if g is None else g for name, g in gradients.items()})
            expected["grad_norm"] = torch.stack([g.square().sum() for g in gradients.values() if g is not None]).sum().sqrt()
        independent.adamw(w, {name: g for name, g in gradients.items() if g is not None}, state, step)
    expected.update({"param." + name: one for name, one in w.items()})
    if "attention_mask" in batch:
        expected["logits"] *= batch["attention_mask"].unsqueeze(-1)
        expected["logits_valid"] = batch["attention_mask"]
    return expected


def slopes(config, weights, batch, expected, random):
    """Worst difference of gradient entries from differences of the loss (four points, h = 1e-4), over 20 random weights."""
    worst = 0.0
    names = [name for name in sorted(weights) if expected["grad." + name].any()]
    for name in random.choice(names, 20):
        gradient = expected["grad." + name]
        where = np.unravel_index(gradient.abs().argmax().item() if random.random() < 0.5 else random.integers(gradient.numel()), gradient.shape)
        slope = 0.0
        for step, factor in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            moved = {**weights, name: weights[name].clone()}
            moved[name][where] += step * 1e-4
            slope += factor * independent.forward(moved, config, batch)[0].item() / 12e-4
        worst = max(worst, abs(slope - gradient[where].item()) / max(1.0, gradient.abs().max().item()))
    return worst


def prove(name, config, weights, batch, expected, random):
    """Fails unless the values are fp64 through and through."""
    assert all(torch.isfinite(one).all() for one in expected.values() if one.is_floating_point()), "not finite"
    assert all(one.dtype in (torch.float64, torch.int64) for one in expected.values())
    mine = own(config, weights, batch)
    assert mine.keys() == expected.keys(), mine.keys() ^ expected.keys()
    assert torch.equal(mine["position_ids"], expected["position_ids"]), "position ids differ"
    floor = 1e-6 * max(one.abs().max().item() for key, one in expected.items() if key.startswith("grad."))
    worst = {}
    for key, one in expected.items():
        if one.numel() and one.is_floating_point():
            error = (one - mine[key]).abs().max().item() / max(one.abs().max().item(), floor)
            worst[key.split(".")[0]] = max(worst.get(key.split(".")[0], 0.0), error)
    difference = slopes(config, weights, batch, expected, random)
    print(f"{name}: loss {expected['loss'].item():.12f}, independent implementation " + ", ".join(f"{k} {v:.0e}" for k, v in worst.items()) + f"; differences {difference:.0e}")
    assert max(worst.values()) < AGREE and difference < 1e-8, name


def make(name, out):
    """One case's folder."""
    random = np.random.default_rng([ord(letter) for letter in name])
    with true_fp64():
        config, batch = CASES[name](random)
        model = build(config, random)
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_folder(model, config, folder)
        weights = {file_name(key): p.data.clone() for key, p in model.named_parameters()}
        expected = run(model, batch)
    prove(name, config, weights, batch, expected, random)
    save_file({key: one.contiguous() for key, one in sorted(batch.items())}, folder / "batch.safetensors")
    save_file({key: one.contiguous() for key, one in sorted(expected.items())}, folder / "expected.safetensors")
    print(f"  {sum(one.numel() for one in weights.values())} parameters, {sum(f.stat().st_size for f in folder.iterdir()) // 1000} kB")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", help="cases, separated by commas")
    arguments.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = arguments.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)   # one order of summation
    for name in given.only.split(",") if given.only else CASES:
        make(name, given.out)


if __name__ == "__main__":
    main()
