#!/usr/bin/env python3
"""Writes a random fp32 Qwen2.5-VL checkpoint folder as transformers saves it, with a batch to train on and a prompt.

usage: make_model.py --shape tiny|1024|3b2 --out FOLDER [--shard-mb N]
FOLDER gets config.json, *.safetensors (with --shard-mb several and an index), batch.safetensors (the input of `qwen_vl
verify`) and prompt.safetensors (one sample, no labels). Shapes:
  tiny  2 x 64 patches; tower 3 x 64, language model 2 x 128: overhead shows
  1024  one 448 x 448 picture, 1,024 patches: 4 blocks x 480 with heads of 80, 2 layers x 768 with heads of 128
  3b2   the 3B model's widths with 2 layers each, tied: 2.2 GB, for loading and for round trips
"""

import argparse
import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

# text: hidden, layers, heads, kv, intermediate, sections, vocabulary, tied
# vision: hidden, blocks, heads, intermediate, full-attention blocks
# batch: samples, picture's rows and columns of patches, text tokens a sample
SHAPES = {
    "tiny": ((128, 2, 4, 2, 384, [4, 6, 6], 1000, True), (64, 3, 4, 176, [1]), (2, (8, 8), 40)),
    "1024": ((768, 2, 6, 2, 2064, [16, 24, 24], 8000, False), (480, 4, 6, 1284, [3]), (1, (32, 32), 256)),
    "3b2": ((2048, 2, 16, 2, 11008, [16, 24, 24], 151936, True), (1280, 2, 16, 3420, [1]), (1, (8, 10), 24)),
}


def config_of(text, vision):
    hidden, layers, heads, kv, intermediate, sections, vocabulary, tied = text
    width, blocks, vision_heads, vision_intermediate, full = vision
    published = vocabulary > 151656
    first = 151652 if published else vocabulary - 5   # vision_start, vision_end, vision_pad, image, video
    return transformers.Qwen2_5_VLConfig(
        tie_word_embeddings=tied, vision_start_token_id=first, vision_end_token_id=first + 1, image_token_id=first + 3, video_token_id=first + 4,
        text_config={"vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
                     "intermediate_size": intermediate, "rms_norm_eps": 1e-6, "max_position_embeddings": 128000, "bos_token_id": 151643 if published else 1,
                     "eos_token_id": 151645 if published else 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}},
        vision_config={"depth": blocks, "hidden_size": width, "num_heads": vision_heads, "intermediate_size": vision_intermediate, "out_hidden_size": hidden,
                       "fullatt_block_indexes": full, "patch_size": 14, "temporal_patch_size": 2, "window_size": 112, "tokens_per_second": 2})


def batch_of(config, samples, grid, text, random):
    """Text, picture, text; the last half of the text has labels."""
    before = text // 4
    picture = [config.vision_start_token_id] + [config.image_token_id] * (grid[0] * grid[1] // 4) + [config.vision_end_token_id]
    rows = []
    for _ in range(samples):
        words = torch.randint(3, min(config.vision_start_token_id, config.text_config.vocab_size), (text - 2,), generator=random).tolist()
        rows.append(words[:before] + picture + words[before:])
    ids = torch.tensor(rows)
    labels = torch.full_like(ids, -100)
    labels[:, -text // 2:] = ids[:, -text // 2:]
    values = torch.randn(samples * grid[0] * grid[1], 3 * 2 * 14 * 14, generator=random)
    return {"input_ids": ids, "labels": labels, "pixel_values": values, "image_grid_thw": torch.tensor([[1, *grid]] * samples)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--shape", required=True, choices=SHAPES)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--shard-mb", type=int, default=50000)
    given = arguments.parse_args()
    transformers.utils.logging.disable_progress_bar()
    text, vision, (samples, grid, words) = SHAPES[given.shape]
    random = torch.Generator().manual_seed(1024)
    torch.manual_seed(1024)
    model = transformers.Qwen2_5_VLForConditionalGeneration(config_of(text, vision))
    for one in model.parameters():
        if one.dim() == 1:   # biases and norms as in a trained model: not 0, not 1
            one.data += 0.05 * torch.randn(one.shape, generator=random)
    shutil.rmtree(given.out, ignore_errors=True)
    model.save_pretrained(given.out, max_shard_size=f"{given.shard_mb}MB")
    save_file(batch_of(model.config, samples, grid, words, random), given.out / "batch.safetensors")
    prompt = batch_of(model.config, 1, grid, words, random)
    save_file({**prompt, "labels": torch.full_like(prompt["labels"], -100)}, given.out / "prompt.safetensors")
    print(f"{given.out}: {sum(one.numel() for one in model.parameters()):,} parameters, batch {list(prompt['input_ids'].shape)} x {samples}, {grid[0] * grid[1]} patches a sample")


if __name__ == "__main__":
    main()
