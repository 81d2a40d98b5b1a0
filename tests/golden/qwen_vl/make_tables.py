#!/usr/bin/env python3
"""Makes tables.json: window indexes and positions on three axes as transformers computes them, for unit tests of those alone.

usage: make_tables.py
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel
from transformers.vision_utils import get_vision_window_index

import independent
from cases import END, IMAGE, START, VIDEO

# grids, window size and patch size in pixels, merge
WINDOWS = [
    ([[1, 4, 4]], 112, 14, 2), ([[1, 8, 8]], 112, 14, 2), ([[1, 16, 16]], 112, 14, 2), ([[1, 10, 14]], 112, 14, 2), ([[1, 32, 32]], 112, 14, 2),
    ([[1, 2, 50]], 112, 14, 2), ([[3, 10, 6]], 112, 14, 2), ([[1, 18, 4], [2, 4, 18], [1, 8, 8]], 112, 14, 2), ([[1, 6, 10]], 16, 4, 2),
    ([[1, 6, 10]], 8, 4, 2), ([[2, 6, 4], [1, 4, 4]], 8, 4, 2), ([[1, 6, 10]], 24, 4, 2), ([[1, 6, 10]], 32, 4, 2), ([[1, 6, 10]], 20, 4, 2),
    ([[1, 3, 5]], 8, 4, 1), ([[2, 5, 3], [1, 1, 1]], 12, 4, 1), ([[1, 9, 15]], 24, 4, 3), ([[2, 6, 9], [1, 3, 3]], 12, 2, 3), ([[1, 14, 22]], 12, 2, 2),
    ([[4, 2, 2], [1, 12, 2], [1, 2, 12]], 16, 4, 2),
]

SPECIAL = {START: 90, END: 91, IMAGE: 92, VIDEO: 93}

# name, samples (text lengths and pictures), pad, seconds, tokens per second, merge
POSITIONS = [
    ("worked example of the notes", [[2, (IMAGE, [1, 4, 4]), 1]], None, None, 2, 2),
    ("no text around", [[(IMAGE, [1, 4, 6])]], None, None, 2, 2),
    ("two pictures", [[3, (IMAGE, [1, 4, 10]), 2, (IMAGE, [1, 8, 4]), 4]], None, None, 2, 2),
    ("mixed batch", [[2, (IMAGE, [1, 4, 4]), 6], [12], [3, (IMAGE, [1, 2, 6]), 4]], "right", None, 2, 2),
    ("left padding", [[2, (IMAGE, [1, 4, 4]), 6], [4], [3, (IMAGE, [1, 2, 6]), 1]], "left", None, 2, 2),
    ("a video without seconds", [[2, (VIDEO, [4, 4, 4]), 3]], None, None, 4, 2),
    ("text after a long video goes on after its sides", [[1, (VIDEO, [6, 4, 2]), 5]], None, [2.0], 2, 2),
    ("seconds below 1, fp32", [[1, (VIDEO, [5, 2, 4]), 2, (VIDEO, [3, 4, 4]), 1]], None, np.array([0.7, 1.5], np.float32), 2, 2),
    ("0.35 s in fp32: 10 steps round up to 7", [[1, (VIDEO, [11, 2, 2]), 1]], None, np.array([0.35], np.float32), 2, 2),
    ("0.29 s in fp32 at 25 a second", [[1, (VIDEO, [9, 2, 2]), 1]], None, np.array([0.29], np.float32), 25, 2),
    ("0.29 s in fp64 at 25 a second", [[1, (VIDEO, [9, 2, 2]), 1]], None, np.array([0.29], np.float64), 25, 2),
    ("pictures and videos with padding", [[1, (VIDEO, [2, 4, 4]), 1, (IMAGE, [1, 4, 6]), 2], [3, (IMAGE, [1, 2, 2]), 1], [2, (VIDEO, [3, 2, 4]), 4]], "left", [0.5, 1.25], 4, 2),
    ("merge 1", [[2, (IMAGE, [1, 3, 5]), 1, (VIDEO, [2, 2, 3]), 2]], None, [1.0], 3, 1),
    ("merge 3", [[2, (IMAGE, [1, 6, 9]), 1, (VIDEO, [2, 3, 6]), 2]], None, [0.75], 3, 3),
]


def window_table(grids, window, patch, merge):
    index, ends = get_vision_window_index(torch.tensor(grids), merge, window, patch)
    where = independent.places(grids, merge, window // merge // patch)
    units = [where[merge * merge * unit][3] for unit in index.tolist()]
    sizes = [units.count(one) * merge * merge for one in dict.fromkeys(units)]
    assert np.cumsum([0] + sizes).tolist() == ends.tolist(), "the independent windows differ"
    return {"grids": grids, "window_size": window, "patch_size": patch, "merge": merge, "window_index": index.tolist(), "cu_window_seqlens": ends.tolist()}


def tokens_of(sample, merge):
    """(ids, runs): a run is [length] of text or [kind, t, h, w]."""
    ids, runs = [], [[0]]
    for part in sample:
        if isinstance(part, int):
            ids += range(1, part + 1)
            runs[-1][0] += part
            continue
        kind, (t, h, w) = part
        ids += [SPECIAL[START]] + [SPECIAL[kind]] * (t * h * w // merge**2) + [SPECIAL[END]]
        runs[-1][0] += 1
        runs += [[kind, t, h, w], [1]]
    return ids, runs


def position_table(name, samples, pad, seconds, per_second, merge):
    rows, runs = zip(*(tokens_of(sample, merge) for sample in samples), strict=True)
    length = max(map(len, rows))
    assert pad or all(len(row) == length for row in rows), name
    blanks = [[0] * (length - len(row)) for row in rows]
    ids, mask = ([one + gap if pad != "left" else gap + one for one, gap in zip(ones, blanks, strict=True)] for ones in (rows, [[1] * len(row) for row in rows]))
    grids = {kind: [list(part[1]) for sample in samples for part in sample if not isinstance(part, int) and part[0] == kind] for kind in (IMAGE, VIDEO)}
    batch = {"input_ids": torch.tensor(ids)}
    batch |= {"attention_mask": torch.tensor(mask)} if pad else {}
    batch |= {f"{kind}_grid_thw": torch.tensor(ones) for kind, ones in grids.items() if ones}
    batch |= {"second_per_grid_ts": torch.from_numpy(np.asarray(seconds))} if seconds is not None else {}
    types = (batch["input_ids"] == SPECIAL[IMAGE]).int() + 2 * (batch["input_ids"] == SPECIAL[VIDEO]).int()
    vision = SimpleNamespace(spatial_merge_size=merge, tokens_per_second=per_second)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=vision), get_vision_position_ids=lambda *a, **k: Qwen2_5_VLModel.get_vision_position_ids(None, *a, **k))
    positions, _ = Qwen2_5_VLModel.get_rope_index(model, mm_token_type_ids=types, **batch)
    config = {"image_token_id": SPECIAL[IMAGE], "video_token_id": SPECIAL[VIDEO], "vision_config": vars(vision)}
    assert torch.equal(independent.positions(config, batch), positions), name
    return {
        "name": name, "tokens_per_second": per_second, "merge": merge, "image_token_id": SPECIAL[IMAGE], "video_token_id": SPECIAL[VIDEO], "input_ids": ids,
        "attention_mask": mask if pad else None, "image_grid_thw": grids[IMAGE], "video_grid_thw": grids[VIDEO],
        "second_per_grid_ts": None if seconds is None else [float(one) for one in seconds],
        "seconds_dtype": None if seconds is None else str(np.asarray(seconds).dtype), "runs": runs, "position_ids": positions.tolist(),
    }


def main():
    tables = {"made_by": "make_tables.py with transformers 5.24.0", "windows": [window_table(*one) for one in WINDOWS], "positions": [position_table(*one) for one in POSITIONS]}
    lines = ",\n".join(f'"{key}": ' + (json.dumps(one) if isinstance(one, str) else "[\n" + ",\n".join(json.dumps(row) for row in one) + "\n]") for key, one in tables.items())
    path = Path(__file__).parent / "tables.json"
    path.write_text("{\n" + lines + "\n}\n")
    assert json.loads(path.read_text())["windows"] == tables["windows"]
    print(f"{len(WINDOWS)} windows, {len(POSITIONS)} positions, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
