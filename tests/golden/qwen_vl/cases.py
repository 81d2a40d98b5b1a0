"""The cases: a tiny model's sizes and a batch each. See README.md for which case shows what."""

import numpy as np
import torch

IMAGE, VIDEO, START, END = "image", "video", "start", "end"


def sizes(vocabulary, text, vision, tied=False, flat=False):
    """`text`: hidden, layers, heads, kv_heads, intermediate, sections, theta. The last 4 ids of the vocabulary are
    special; `flat` is the published form of config.json. Keep theta small for wide heads: a bias of k has a gradient only
    through the rotation, and AdamW divides by its size, so a frequency near 0 makes round-off visible in the parameters."""
    hidden, layers, heads, kv, intermediate, sections, theta = text
    assert sum(sections) * 2 * heads == hidden
    return {
        "model_type": "qwen2_5_vl",
        "tie_word_embeddings": tied,
        "image_token_id": vocabulary - 2,
        "video_token_id": vocabulary - 1,
        "vision_start_token_id": vocabulary - 4,
        "vision_end_token_id": vocabulary - 3,
        "text_config": {
            "model_type": "qwen2_5_vl_text", "vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": intermediate, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "bos_token_id": 1, "eos_token_id": 2, "rope_parameters": {"rope_type": "default", "rope_theta": theta, "mrope_section": sections},
        },
        "vision_config": {
            "model_type": "qwen2_5_vl", "in_channels": 3, "hidden_act": "silu", "spatial_merge_size": 2, "out_hidden_size": hidden, **vision,
        },
        "flat": flat,
    }


def tower(depth, hidden, heads, intermediate, patch, temporal, window, full, per_second=2, **more):
    return {"depth": depth, "hidden_size": hidden, "num_heads": heads, "intermediate_size": intermediate, "patch_size": patch, "temporal_patch_size": temporal,
            "window_size": window, "fullatt_block_indexes": full, "tokens_per_second": per_second, **more}


class Sequence:
    """Builds the tokens of one sample; a number is so many random text tokens, a grid is a picture."""

    def __init__(self, config, random):
        self.config, self.random = config, random
        self.ids, self.images, self.videos = [], [], []

    def text(self, count):
        self.ids += self.random.integers(3, self.config["vision_start_token_id"], count).tolist()

    def picture(self, kind, grid):
        t, h, w = grid
        merge = self.config["vision_config"]["spatial_merge_size"]
        token = self.config["image_token_id" if kind == IMAGE else "video_token_id"]
        self.ids += [self.config["vision_start_token_id"]] + [token] * (t * h * w // merge**2) + [self.config["vision_end_token_id"]]
        (self.images if kind == IMAGE else self.videos).append(list(grid))


def pixels(config, grids, random):
    """Processor-like values, exact in fp32."""
    vision = config["vision_config"]
    values = vision["in_channels"] * vision["temporal_patch_size"] * vision["patch_size"] ** 2
    return torch.from_numpy(random.standard_normal((sum(t * h * w for t, h, w in grids), values)).astype(np.float32))


def batch_of(config, samples, answers, random, pad=None, seconds=None):
    """`samples`: lists of text lengths and (kind, grid). `answers`: how many of each sample's last tokens have labels.
    `pad`: None (all of one length), "right" or "left". `seconds`: a NumPy array, one per video."""
    rows = []
    for parts in samples:
        row = Sequence(config, random)
        for part in parts:
            row.text(part) if isinstance(part, int) else row.picture(*part)
        rows.append(row)
    length = max(len(row.ids) for row in rows)
    ids, labels, mask = (torch.full((len(rows), length), fill, dtype=torch.int64) for fill in (0, -100, 0))
    for i, (row, answer) in enumerate(zip(rows, answers, strict=True)):
        assert pad or len(row.ids) == length, (i, len(row.ids), length)
        begin = length - len(row.ids) if pad == "left" else 0
        end = begin + len(row.ids)
        ids[i, begin:end] = torch.tensor(row.ids)
        mask[i, begin:end] = 1
        if answer:
            assert answer < len(row.ids) or pad != "left", "padding would predict the first token"
            labels[i, end - answer:end] = ids[i, end - answer:end]
    out = {"input_ids": ids, "labels": labels}
    if pad:
        out["attention_mask"] = mask
    images, videos = ([grid for row in rows for grid in getattr(row, kind)] for kind in ("images", "videos"))
    if images:
        out["pixel_values"], out["image_grid_thw"] = pixels(config, images, random), torch.tensor(images)
    if videos:
        out["pixel_values_videos"], out["video_grid_thw"] = pixels(config, videos, random), torch.tensor(videos)
        if seconds is not None:
            out["second_per_grid_ts"] = torch.from_numpy(seconds)
    return out


def one_image(random):
    """Windows of 2 x 2 units do not divide 3 x 5 units."""
    config = sizes(61, (24, 2, 4, 2, 10, [1, 1, 1], 1e6), tower(2, 16, 4, 9, 4, 2, 16, [1]), tied=True, flat=True)
    return config, batch_of(config, [[3, (IMAGE, (1, 6, 10)), 5]], [4], random)


def text_only(random):
    config = sizes(163, (18, 2, 3, 1, 14, [1, 1, 1], 1e6), tower(2, 12, 3, 10, 4, 2, 16, [1]), tied=False)
    return config, batch_of(config, [[11], [11]], [11, 3], random)


def mixed_images(random):
    """Several pictures a sample, a sample without, unequal counts of labels."""
    config = sizes(79, (18, 2, 3, 1, 14, [1, 1, 1], 1e5), tower(3, 12, 3, 10, 4, 2, 16, [1]), tied=False, flat=True)
    samples = [[2, (IMAGE, (1, 4, 6)), 2, (IMAGE, (1, 6, 6)), 2], [25], [4, (IMAGE, (1, 10, 4)), 9]]
    return config, batch_of(config, samples, [1, 12, 5], random)


def video(random):
    """Temporal patch 3, windows of one unit, seconds in fp32."""
    config = sizes(59, (24, 2, 4, 2, 8, [1, 1, 1], 1e6), tower(3, 12, 3, 8, 4, 3, 8, [1], per_second=3), tied=True)
    samples = [[3, (VIDEO, (3, 4, 4)), 4], [2, (VIDEO, (2, 6, 4)), 5]]
    return config, batch_of(config, samples, [3, 5], random, seconds=np.array([0.7, 1.5], np.float32))


def image_and_video(random):
    """Both in a sample and in the batch; the order of vision_tokens is not that of the samples; seconds in fp64; sections [2, 3, 3]."""
    config = sizes(47, (32, 2, 2, 1, 8, [2, 3, 3], 1e3), tower(3, 12, 3, 8, 4, 1, 16, [1], per_second=2), tied=True, flat=True)
    samples = [[(VIDEO, (3, 4, 4)), 1, (IMAGE, (1, 4, 6)), 2], [4, (IMAGE, (1, 6, 6)), 10], [2, (VIDEO, (2, 6, 4)), 9]]
    return config, batch_of(config, samples, [2, 7, 4], random, seconds=np.array([0.7, 1.25], np.float64))


def right_padding(random):
    """One sample has no label at all, one no picture."""
    config = sizes(163, (18, 2, 3, 1, 11, [1, 1, 1], 1e6), tower(2, 12, 3, 9, 4, 2, 16, [1]), tied=True)
    samples = [[2, (IMAGE, (1, 6, 4)), 3], [5, (IMAGE, (1, 4, 4)), 7], [9]]
    return config, batch_of(config, samples, [2, 0, 6], random, pad="right")


def left_padding(random):
    config = sizes(59, (24, 2, 4, 2, 9, [1, 1, 1], 1e6), tower(2, 16, 4, 9, 4, 2, 16, [1]), tied=True, flat=True)
    samples = [[6], [1, (IMAGE, (1, 4, 6)), 4], [2, (IMAGE, (1, 4, 4)), 2, (IMAGE, (1, 4, 4)), 3]]
    return config, batch_of(config, samples, [5, 3, 2], random, pad="left")


def text_padding(random):
    """No picture in the batch: positions count on through the padding."""
    config = sizes(89, (24, 2, 3, 3, 13, [2, 1, 1], 1e4), tower(2, 12, 3, 7, 4, 2, 16, [1]), tied=False)
    return config, batch_of(config, [[8], [5], [12]], [4, 4, 7], random, pad="left")


def four_kv_heads(random):
    """For tp = 4: 8 heads on 4 kv heads."""
    config = sizes(53, (48, 2, 8, 4, 8, [1, 1, 1], 1e6), tower(2, 12, 3, 8, 4, 2, 16, [1]), tied=True)
    return config, batch_of(config, [[2, (IMAGE, (1, 6, 6)), 6], [17 + 2]], [4, 6], random)


def odd_sizes(random):
    """Nothing divides: intermediate 13 and 7, vocabulary 41, 6 heads on 3 kv heads, patch 2, edge windows 1 unit wide."""
    config = sizes(41, (36, 2, 6, 3, 13, [1, 1, 1], 5e5), tower(2, 12, 3, 7, 2, 2, 8, [1]), tied=False, flat=True)
    return config, batch_of(config, [[1, (IMAGE, (1, 6, 10)), 3], [8, (IMAGE, (1, 4, 6)), 5]], [2, 9], random)


def one_window(random):
    """A picture of one window: sp > 1 leaves ranks without tokens. 4 vision heads, 3 heads on 1 kv head of 8."""
    config = sizes(67, (24, 2, 3, 1, 10, [2, 1, 1], 1e4), tower(2, 16, 4, 10, 4, 2, 32, [1]), tied=True)
    return config, batch_of(config, [[2, (IMAGE, (1, 4, 4)), 5]], [4], random)


def wide_heads(random):
    """3 vision heads of 8 (two frequencies an axis), 1 channel, a grid of 5 x 7 units, tall windows of 2 units."""
    config = sizes(43, (18, 1, 3, 1, 8, [1, 1, 1], 1e4), tower(2, 24, 3, 8, 2, 2, 8, [1], in_channels=1), tied=True)
    return config, batch_of(config, [[1, (IMAGE, (1, 10, 14)), 2]], [2], random)


def merge_one(random):
    """No merging of patches; full attention in blocks 0 and 2; a video without seconds; 3 kv heads without sharing."""
    config = sizes(71, (18, 2, 3, 3, 11, [1, 1, 1], 1e6), tower(4, 12, 3, 9, 4, 2, 8, [0, 2], spatial_merge_size=1), tied=False, flat=True)
    samples = [[2, (IMAGE, (1, 3, 5)), 4], [3, (VIDEO, (2, 3, 2)), 6]]
    return config, batch_of(config, samples, [3, 4], random)


CASES = {f.__name__: f for f in (one_image, text_only, mixed_images, video, image_and_video, right_padding, left_padding, text_padding, four_kv_heads, odd_sizes,
                                 one_window, wide_heads, merge_one)}
