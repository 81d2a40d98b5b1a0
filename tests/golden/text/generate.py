"""Writes tokenizer.jsonl, classes.json and chat.jsonl beside this file: what PyPI transformers says. Not run in CI; see README.md."""
import argparse
import base64
import json
import pathlib

from tokenizers import AddedToken, Regex, pre_tokenizers
from transformers import Qwen2Tokenizer

import chats
from strings import strings

HERE = pathlib.Path(__file__).parent
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>",
           "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
ORDINARY = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]


def alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shifted = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(shifted)}}


def from_ranks(path):
    """The fast tokenizer that transformers makes of tiktoken ranks: every pair of tokens that makes a token is a merge."""
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in open(path, "rb"))}
    letters = alphabet()

    def show(token):
        return "".join(letters[byte] for byte in token)

    merges = []
    for token in sorted(ranks, key=ranks.get):
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += [(show(a), show(b)) for a, b in sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))]
    tokenizer = Qwen2Tokenizer(vocab={show(token): rank for token, rank in ranks.items()}, merges=merges)
    for names, special in ((SPECIAL, True), (ORDINARY, False)):
        tokenizer.add_tokens([AddedToken(name, special=special, normalized=False) for name in names], special_tokens=special)
    assert tokenizer.convert_tokens_to_ids("<|image_pad|>") == 151655 and tokenizer.convert_tokens_to_ids("<|file_sep|>") == 151664
    return tokenizer


def classes():
    """One letter for each code point, as the regular expressions of tokenizers see it: how many of each, and a sum over the runs of equal ones."""
    letters = bytearray(b"o" * 0x110000)
    for name, pattern in (("L", r"\p{L}"), ("N", r"\p{N}"), ("S", r"\s")):
        split = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=False)
        for code in range(0x110000):
            if not 0xD800 <= code < 0xE000 and not split.pre_tokenize_str(chr(code)):
                letters[code] = ord(name)
    counts = {name: letters.count(name.encode()) for name in "LNSo"}
    starts = [code for code in range(0x110000) if code == 0 or letters[code - 1] != letters[code]]
    return {"counts": counts, "runs": len(starts), "sum_of_start_times_letter": sum(code * letters[code] for code in starts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", help="qwen.tiktoken of PyPI dashscope")
    parser.add_argument("--check-saved", help="a tokenizer.json that Troupe saved from the same ranks: compare instead of writing")
    options = parser.parse_args()
    tokenizer = from_ranks(options.ranks)
    if options.check_saved:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
        path = pathlib.Path(options.check_saved)
        other = AutoTokenizer.from_pretrained(path) if path.is_dir() else PreTrainedTokenizerFast(tokenizer_file=str(path))
        print(type(other).__name__)
        for text in strings(2000):
            assert tokenizer.encode(text, add_special_tokens=False) == other.encode(text, add_special_tokens=False), repr(text)
        print("equal on 2,000 strings")
        return
    with open(HERE / "tokenizer.jsonl", "w") as out:
        for text in strings(2000):
            json.dump([text, tokenizer.encode(text, add_special_tokens=False)], out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")
    (HERE / "classes.json").write_text(json.dumps(classes()) + "\n")
    with open(HERE / "chat.jsonl", "w") as out:
        for case in chats.cases(tokenizer):
            json.dump(case, out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")


if __name__ == "__main__":
    main()
