#!/usr/bin/env python3
"""Compares two outputs of `qwen_vl verify`, or one with a case's expected.safetensors, by NUM-1's measure.

usage: check_verify.py GOT.safetensors EXPECTED.safetensors [--tolerance 1e-9]
Per kind of tensor (loss, logits, grad, ...) it prints the worst error and the tensor that has it, where
error = max|a - b| / max(max|b|, 1e-6 x the largest entry of any gradient). Exit 1 when one is above the tolerance, or
when names, shapes or whole numbers differ. Needs numpy and safetensors only.
"""

import argparse
import sys

import numpy as np
from safetensors.numpy import load_file


def error_of(got, expected, floor):
    if got.size == 0:
        return 0.0
    worst = np.abs(got.astype(np.float64) - expected.astype(np.float64)).max()
    if np.issubdtype(expected.dtype, np.integer):
        return 0.0 if worst == 0 else np.inf
    largest = max(np.abs(expected).max(), floor)
    return worst / largest if largest > 0 else (0.0 if worst == 0 else np.inf)


def compare(got, expected):
    """(kind -> (worst error, its tensor), complaints)."""
    valid = expected.pop("logits_valid", None)
    got.pop("logits_valid", None)
    if valid is not None and "logits" in got:   # rows of padding are nobody's business
        got["logits"] = np.where(valid[..., None] != 0, got["logits"], 0)
    complaints = [f"missing: {name}" for name in sorted(expected.keys() - got.keys())]
    complaints += [f"not expected: {name}" for name in sorted(got.keys() - expected.keys())]
    floor = 1e-6 * max((np.abs(one).max() for name, one in expected.items() if name.startswith("grad.") and one.size), default=0.0)
    worst = {}
    for name in sorted(expected.keys() & got.keys()):
        if got[name].shape != expected[name].shape:
            complaints.append(f"{name}: expected shape {expected[name].shape}, got {got[name].shape}")
            continue
        error = error_of(got[name], expected[name], floor)
        error = np.inf if np.isnan(error) else error
        kind = name.split(".")[0]
        if kind not in worst or error > worst[kind][0]:
            worst[kind] = (float(error), name)
    return worst, complaints


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("got")
    arguments.add_argument("expected")
    arguments.add_argument("--tolerance", type=float, default=1e-9)
    given = arguments.parse_args()
    worst, complaints = compare(load_file(given.got), load_file(given.expected))
    for kind, (error, name) in worst.items():
        print(f"{kind:14} {error:.2e}  {'' if name == kind else name}{'   TOO LARGE' if error > given.tolerance else ''}")
    print("\n".join(complaints), end="\n" if complaints else "")
    sys.exit(1 if complaints or any(error > given.tolerance for error, _ in worst.values()) else 0)


if __name__ == "__main__":
    main()
