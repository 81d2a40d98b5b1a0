#!/usr/bin/env python3
"""Greedy generation of Qwen2.5-VL by transformers, with its key-value cache: the peer of qwen.generate.

usage: generate.py FOLDER PROMPT.safetensors [--threads N] [--tokens N] [--repeats N]
Without --repeats it serves: a line `generate` on stdin answers {"tokens": [...], "prompt_seconds": p, "token_seconds": t,
"tokens_per_second": r}: the prompt with its pictures until the first token, then all tokens after it. PROMPT is a batch
of one sample; labels are ignored. Stop ids are ignored, so that every run makes the same number of tokens.
"""

import argparse
import json
import time

import peer  # first: it sets the environment of torch's threads
import torch
from transformers.generation.streamers import BaseStreamer


class Watch(BaseStreamer):
    """Notes when tokens come; the first call is the prompt."""

    def __init__(self):
        self.times = []

    def put(self, value):
        self.times.append(time.perf_counter())

    def end(self):
        pass


class Generator:
    def __init__(self, model, batch, tokens):
        self.model, self.count = model.eval(), tokens
        self.inputs = {key: one for key, one in batch.items() if key != "labels"}
        self.inputs.setdefault("attention_mask", torch.ones_like(batch["input_ids"]))
        model.generation_config.eos_token_id = None

    @torch.inference_mode()
    def once(self):
        watch = Watch()
        start = time.perf_counter()
        out = self.model.generate(**self.inputs, max_new_tokens=self.count, do_sample=False, streamer=watch, pad_token_id=0)
        new = out[0, self.inputs["input_ids"].shape[1]:].tolist()
        first, last = watch.times[1], watch.times[-1]
        return {"tokens": new, "prompt_seconds": first - start, "token_seconds": last - first, "tokens_per_second": (len(new) - 1) / (last - first)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder")
    arguments.add_argument("prompt")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--tokens", type=int, default=64)
    arguments.add_argument("--repeats", type=int)
    given = arguments.parse_args()
    model, batch = peer.load(given.folder, given.prompt, given.threads)
    generator = Generator(model, batch, given.tokens)
    if given.repeats is None:
        peer.serve({"generate": generator.once}, peer.about(model, given.threads))
    else:
        generator.once()
        runs = [generator.once() for _ in range(given.repeats)]
        rates = [one["tokens_per_second"] for one in runs]
        print(json.dumps({**peer.about(model, given.threads), "tokens": runs[0]["tokens"], "prompt_seconds": [one["prompt_seconds"] for one in runs],
                          "tokens_per_second": rates, "median": sorted(rates)[len(rates) // 2]}))


if __name__ == "__main__":
    main()
