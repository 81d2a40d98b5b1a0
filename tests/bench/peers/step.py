#!/usr/bin/env python3
"""Training steps of Qwen2.5-VL by transformers: PyTorch eager, sdpa attention, AdamW, fp32. The peer of qwen.step_vs_transformers.

usage: step.py FOLDER BATCH.safetensors [--threads N] [--repeats N] [--optimizer fused|foreach|loop] [--grad-norm] [--profile]
Without --repeats it serves: a line `step` on stdin makes one step and answers {"seconds": s, "loss": l}, so that a
bench can pair its own steps with these in one run; first line out: {"ready": true, ...}. With --repeats, after two
untimed steps, one line {"seconds": [...], ...}.
A step: zero gradients, forward with loss, backward, AdamW (lr 1e-3, weight decay 0.01), loss read on the host.
"""

import argparse
import json
import time

import peer  # first: it sets the environment of torch's threads
import torch


class Trainer:
    def __init__(self, model, batch, optimizer, with_norm):
        self.model, self.batch, self.with_norm = model.train(), batch, with_norm
        kind = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[optimizer]
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **kind)
        self.synchronize = torch.cuda.synchronize if next(model.parameters()).is_cuda else lambda: None

    def once(self):
        self.synchronize()
        start = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.model(**self.batch, use_cache=False).loss
        loss.backward()
        forward_backward = time.perf_counter() - start
        report = {}
        if self.with_norm:
            report["grad_norm"] = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None]).item()
        self.optimizer.step()
        report["loss"] = loss.item()
        self.synchronize()
        return {"seconds": time.perf_counter() - start, "forward_backward_seconds": forward_backward, **report}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder")
    arguments.add_argument("batch")
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--repeats", type=int)
    arguments.add_argument("--optimizer", default="fused", choices=["fused", "foreach", "loop"])
    arguments.add_argument("--grad-norm", action="store_true", help="also the norm of all gradients, every step")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    arguments.add_argument("--profile", action="store_true", help="the operators of one step, largest first")
    given = arguments.parse_args()
    model, batch = peer.load(given.folder, given.batch, given.threads, given.device, getattr(torch, given.dtype))
    trainer = Trainer(model, batch, given.optimizer, given.grad_norm)
    if given.profile:
        trainer.once()
        with torch.profiler.profile() as profile:
            trainer.once()
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=40))
    elif given.repeats is None:
        peer.serve({"step": trainer.once}, peer.about(model, given.threads))
    else:
        steps = [trainer.once() for _ in range(given.repeats + 2)]
        timed = steps[2:]
        both = {key: [one[key] for one in timed] for key in ("seconds", "forward_backward_seconds")}
        print(json.dumps({**peer.about(model, given.threads), **both, "median": sorted(both["seconds"])[len(timed) // 2], "losses": [one["loss"] for one in steps]}))


if __name__ == "__main__":
    main()
