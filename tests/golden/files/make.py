#!/usr/bin/env python3
"""Makes the small safetensors files that tests/train reads, with PyPI's own writer, and reads back what Troupe wrote.

usage: make.py            writes types.safetensors, metadata.safetensors and sharded/ beside this file
       make.py --read DIR compares what train_test left in DIR (TROUPE_KEEP_FILES=DIR) with the same values

Needs PyPI safetensors 0.8, numpy and ml_dtypes. Values are those of value_of(): the test computes them itself.
"""
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # where safetensors looks for them
    setattr(np, kind, getattr(ml_dtypes, kind))

HERE = Path(__file__).resolve().parent
# numpy type, shape; the names are the format's dtypes
TYPES = {
    "F64": (np.float64, (3, 5)), "F32": (np.float32, (2, 3, 4)), "F16": (np.float16, (7,)), "BF16": (ml_dtypes.bfloat16, (5, 3)),
    "F8_E4M3": (ml_dtypes.float8_e4m3fn, (3, 3)), "F8_E5M2": (ml_dtypes.float8_e5m2, (9,)), "I64": (np.int64, (4, 2)),
    "I32": (np.int32, (2, 2, 2)), "I16": (np.int16, (5,)), "I8": (np.int8, (3, 2)), "U8": (np.uint8, (11,)), "BOOL": (np.bool_, (6, 2)),
    "U16": (np.uint16, (3,)), "U32": (np.uint32, (3,)), "U64": (np.uint64, (2,)),
}


def value_of(shape, dtype):
    """i % 8 - 2 (or i % 8 where there is no sign, i % 2 for bools) of element i: exact in every dtype."""
    index = np.arange(int(np.prod(shape))) % 8
    if dtype == np.bool_:
        index = index % 2
    elif np.dtype(dtype).kind not in "ub":
        index = index - 2
    return index.astype(dtype).reshape(shape)


def tensors():
    out = {name: value_of(shape, dtype) for name, (dtype, shape) in TYPES.items()}
    return out | {"scalar": value_of((), np.float32), "empty": value_of((3, 0, 2), np.float64)}


def sharded(folder):
    folder.mkdir(exist_ok=True)
    shards = {"model-00001-of-00002.safetensors": {"embed.weight": value_of((6, 4), np.float32), "layers.0.weight": value_of((4, 4), np.float32)},
              "model-00002-of-00002.safetensors": {"layers.1.weight": value_of((4, 8), np.float16), "norm": value_of((4,), np.float32)}}
    for name, content in shards.items():
        save_file(content, folder / name, {"format": "pt"})
    index = {"metadata": {"total_size": sum(a.nbytes for c in shards.values() for a in c.values())},
             "weight_map": {tensor: name for name, content in shards.items() for tensor in content}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def make():
    save_file(tensors(), HERE / "types.safetensors")
    save_file({"a": value_of((2,), np.float32)}, HERE / "metadata.safetensors", {"format": "pt", "note": 'a "quoted" é line\n'})
    sharded(HERE / "sharded")


def same(left, right, name):
    if left.dtype != right.dtype or left.shape != right.shape or left.tobytes() != right.tobytes():
        sys.exit(f"{name}: expected {right.dtype} {right.shape} {right}, got {left.dtype} {left.shape} {left}")


def read(folder):
    ours = load_file(folder / "types.safetensors")
    wanted = tensors()
    if set(ours) != set(wanted):
        sys.exit(f"names differ: {sorted(set(ours) ^ set(wanted))}")
    for name, value in wanted.items():
        same(ours[name], value, name)
    with safe_open(folder / "types.safetensors", "numpy") as file:
        if file.metadata() != {"format": "pt", "note": 'a "quoted" é line\n'}:
            sys.exit(f"metadata: {file.metadata()}")
    index = json.loads((folder / "sharded" / "model.safetensors.index.json").read_text())
    count = 0
    for name, shard in index["weight_map"].items():
        same(load_file(folder / "sharded" / shard)[name], wanted[name], name)
        count += 1
    if count != len(wanted) or index["metadata"]["total_size"] != sum(value.nbytes for value in wanted.values()):
        sys.exit("the index does not fit")
    print(f"{len(wanted)} tensors, and again from {len(set(index['weight_map'].values()))} shards: equal")


if __name__ == "__main__":
    read(Path(sys.argv[2])) if sys.argv[1:2] == ["--read"] else make()
