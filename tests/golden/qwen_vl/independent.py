"""Qwen2.5-VL written again in plain torch fp64, from the rules in shared/notes/numbers.md 3.2 and not from
transformers' code: no permutation into windows, attention by dense masks, positions by walking the tokens. It exists
only so that make_cases.py can prove its golden values.

Weights come by the names of the checkpoint file. Legend: P patches, T merged tokens, B samples, S tokens, h width.
"""

import numpy as np
import torch
import torch.nn.functional as F


def turn(x, angles):
    """Rotates pair (i, i + D/2) of x [..., heads, D] by angles [..., D/2]."""
    first, second = x.chunk(2, -1)
    c, s = angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2)
    return torch.cat([first * c - second * s, second * c + first * s], -1)


def norm(x, weight, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def attend(q, k, v, allowed):
    """q, k, v [..., heads, rows, D]; allowed [..., rows, rows] bool."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~allowed, -torch.inf)
    return torch.softmax(scores, -1) @ v


def mlp(w, name, x):
    def linear(part, y):
        return F.linear(y, w[f"{name}.{part}.weight"], w.get(f"{name}.{part}.bias"))

    return linear("down_proj", F.silu(linear("gate_proj", x)) * linear("up_proj", x))


def places(grids, merge, window_units):
    """Of every patch in the processor's order: row, column, frame number, window number."""
    rows = []
    frame = 0
    for t, h, w in grids:
        for _ in range(t):
            for unit_row in range(h // merge):
                for unit_column in range(w // merge):
                    window = (frame, unit_row // window_units, unit_column // window_units)
                    for i in range(merge):
                        for j in range(merge):
                            rows.append((unit_row * merge + i, unit_column * merge + j, frame, window))
            frame += 1
    return rows


def vision(w, config, pixels, grids):
    """Merged tokens [T, out] of all pictures in their order."""
    heads, width = config["num_heads"], config["hidden_size"]
    merge = config["spatial_merge_size"]
    where = places(grids, merge, config["window_size"] // merge // config["patch_size"])
    frame = np.array([one[2] for one in where])
    names = {one: i for i, one in enumerate(dict.fromkeys(one[3] for one in where))}
    window = np.array([names[one[3]] for one in where])
    full, local = (torch.from_numpy(one[:, None] == one[None, :]) for one in (frame, window))
    quarter = width // heads // 4
    frequency = torch.tensor([1e4 ** (-i / quarter) for i in range(quarter)], dtype=torch.float64)
    at = torch.tensor([one[:2] for one in where], dtype=torch.float64)
    angles = torch.cat([at[:, :1] * frequency, at[:, 1:] * frequency], -1)
    x = pixels.double() @ w["visual.patch_embed.proj.weight"].reshape(width, -1).T
    for layer in range(config["depth"]):
        b = f"visual.blocks.{layer}"
        y = norm(x, w[f"{b}.norm1.weight"], 1e-6)
        y = F.linear(y, w[f"{b}.attn.qkv.weight"], w[f"{b}.attn.qkv.bias"]).reshape(len(where), 3, heads, -1)
        q, k = turn(y[:, 0], angles), turn(y[:, 1], angles)
        mask = full if layer in config["fullatt_block_indexes"] else local
        y = attend(q.transpose(0, 1), k.transpose(0, 1), y[:, 2].transpose(0, 1), mask).transpose(0, 1).reshape(len(where), width)
        x = x + F.linear(y, w[f"{b}.attn.proj.weight"], w[f"{b}.attn.proj.bias"])
        x = x + mlp(w, f"{b}.mlp", norm(x, w[f"{b}.norm2.weight"], 1e-6))
    x = norm(x, w["visual.merger.ln_q.weight"], 1e-6).reshape(-1, width * merge * merge)
    x = F.gelu(F.linear(x, w["visual.merger.mlp.0.weight"], w["visual.merger.mlp.0.bias"]))
    return F.linear(x, w["visual.merger.mlp.2.weight"], w["visual.merger.mlp.2.bias"])


def positions(config, batch):
    """[3, B, S]: the rule of transformers 5.x."""
    ids = batch["input_ids"].tolist()
    mask = batch["attention_mask"].tolist() if "attention_mask" in batch else [[1] * len(row) for row in ids]
    merge, per_second = config["vision_config"]["spatial_merge_size"], config["vision_config"]["tokens_per_second"]
    images, videos = iter(batch.get("image_grid_thw", torch.empty(0, 3)).tolist()), iter(batch.get("video_grid_thw", torch.empty(0, 3)).tolist())
    seconds = batch["second_per_grid_ts"].numpy() if "second_per_grid_ts" in batch else np.ones(99)
    single = seconds.dtype.type   # the product is made in the precision that the file has
    seconds = iter(seconds)
    out = torch.zeros(3, *batch["input_ids"].shape, dtype=torch.int64)
    if "image_grid_thw" not in batch and "video_grid_thw" not in batch:
        return out + torch.arange(out.shape[-1])
    for b, row in enumerate(ids):
        following, start, left = 0, 0, []
        for s, token in enumerate(row):
            if not mask[b][s]:
                continue
            if token in (config["image_token_id"], config["video_token_id"]):
                if not left:
                    is_video = token == config["video_token_id"]
                    t, h, w = next(videos if is_video else images)
                    step = next(seconds) * single(per_second) if is_video else single(1)
                    start = following
                    left = [(int(single(k) * step), i, j) for k in range(t) for i in range(h // merge) for j in range(w // merge)]
                    following += max(h, w) // merge
                place = left.pop(0)
                out[:, b, s] = torch.tensor([start + one for one in place])
            else:
                assert not left, "a picture's tokens end early"
                out[:, b, s] = following
                following += 1
    return out


def language(w, config, batch, embeds):
    """Logits [B, S, V]. Padded rows see themselves, so that they stay finite."""
    text = config["text_config"]
    heads, kv = text["num_attention_heads"], text["num_key_value_heads"]
    count, length, width = embeds.shape
    dim = width // heads
    rope = text["rope_parameters"]
    frequency = torch.tensor([rope["rope_theta"] ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    axis = torch.tensor([a for a, n in enumerate(rope["mrope_section"]) for _ in range(n)])
    angles = positions(config, batch)[axis].permute(1, 2, 0).double() * frequency
    allowed = torch.ones(length, length, dtype=torch.bool).tril().expand(count, -1, -1)
    if "attention_mask" in batch:
        allowed = allowed & batch["attention_mask"].bool()[:, None, :] | torch.eye(length, dtype=torch.bool)
    x = embeds
    for layer in range(text["num_hidden_layers"]):
        b = f"model.layers.{layer}"
        y = norm(x, w[f"{b}.input_layernorm.weight"], text["rms_norm_eps"])

        def project(part, n):
            return F.linear(y, w[f"{b}.self_attn.{part}.weight"], w[f"{b}.self_attn.{part}.bias"]).reshape(count, length, n, dim)

        q, k = turn(project("q_proj", heads), angles), turn(project("k_proj", kv), angles)
        q, k, v = (one.transpose(1, 2) for one in (q, k, project("v_proj", kv)))
        owner = torch.arange(heads) * kv // heads
        y = attend(q, k[:, owner], v[:, owner], allowed[:, None]).transpose(1, 2).reshape(count, length, width)
        x = x + y @ w[f"{b}.self_attn.o_proj.weight"].T
        x = x + mlp(w, f"{b}.mlp", norm(x, w[f"{b}.post_attention_layernorm.weight"], text["rms_norm_eps"]))
    x = norm(x, w["model.norm.weight"], text["rms_norm_eps"])
    return x @ w["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"].T


def forward(w, config, batch):
    """(loss, logits, vision tokens) of one batch."""
    ids = batch["input_ids"]
    embeds = F.embedding(ids, w["model.embed_tokens.weight"])
    tokens = []
    for key, grid, token in (("pixel_values", "image_grid_thw", "image_token_id"), ("pixel_values_videos", "video_grid_thw", "video_token_id")):
        if key in batch:
            tokens.append(vision(w, config["vision_config"], batch[key], batch[grid].tolist()))
            b, s = (ids == config[token]).nonzero(as_tuple=True)
            embeds = embeds.index_put((b, s), tokens[-1])
    logits = language(w, config, batch, embeds)
    wanted = batch["labels"][:, 1:]
    b, s = (wanted != -100).nonzero(as_tuple=True)
    picked = logits[b, s, wanted[b, s]]
    return (torch.logsumexp(logits[b, s], -1) - picked).mean(), logits, torch.cat(tokens) if tokens else embeds.new_zeros(0, embeds.shape[-1])


def adamw(w, gradients, state, step, lr=1e-3, decay=0.01, betas=(0.9, 0.999), eps=1e-8):
    """One step in place on what has a gradient; `state` maps names to (mean, square)."""
    for name, g in gradients.items():
        mean, square = state.setdefault(name, (torch.zeros_like(g), torch.zeros_like(g)))
        mean = betas[0] * mean + (1 - betas[0]) * g
        square = betas[1] * square + (1 - betas[1]) * g * g
        state[name] = (mean, square)
        w[name] = w[name] * (1 - lr * decay) - lr * (mean / (1 - betas[0] ** step)) / ((square / (1 - betas[1] ** step)).sqrt() + eps)
