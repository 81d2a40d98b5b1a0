"""What step.py and generate.py share: the model as transformers runs it, and a process that answers lines."""

import json
import os
import sys

# Before torch: threads that spin while another program has their core make 2 threads 4 times slower than 1.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
import transformers
from safetensors.torch import load_file


def load(folder, batch_file, threads, device="cpu", dtype=torch.float32):
    """(model, inputs): eager PyTorch with sdpa attention, the batch with what transformers' processor would add."""
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    model = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").to(device)
    batch = {key: one.to(device) for key, one in load_file(batch_file).items()}
    ids = batch["input_ids"]
    batch["mm_token_type_ids"] = (ids == model.config.image_token_id).int() + 2 * (ids == model.config.video_token_id).int()
    return model, batch


def about(model, threads):
    return {"ready": True, "parameters": sum(one.numel() for one in model.parameters()), "threads": threads, "torch": torch.__version__, "transformers": transformers.__version__}


def serve(commands, first):
    """Writes `first`, then one JSON line for every line that names a command; ends with the input or at `quit`."""
    print(json.dumps(first), flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "quit":
            return
        if word not in commands:
            print(json.dumps({"error": f"unknown command {word!r}; one of {sorted(commands)} or quit"}), flush=True)
            continue
        print(json.dumps(commands[word]()), flush=True)
