"""Conversations, rendered with the chat template that Qwen2.5-VL publishes (its chat_template.json), and their ids."""
TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}"
    "{% set image_count.value = image_count.value + 1 %}{% if add_vision_id %}Picture {{ image_count.value }}: {% endif %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif content['type'] == 'video' or 'video' in content %}{% set video_count.value = video_count.value + 1 %}"
    "{% if add_vision_id %}Video {{ video_count.value }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

IMAGE, VIDEO = "<image>", "<video>"
CONVERSATIONS = [  # role, parts; counts of placeholders; generation prompt; numbered pictures
    ([("user", ["What is this?"])], [], True, False),
    ([("system", ["Answer in one word."]), ("user", [IMAGE, "What is this?"]), ("assistant", ["Fox."])], [4], False, False),
    ([("user", [IMAGE, "What is this?"]), ("assistant", ["A fire engine."]), ("user", ["Which colour?"]), ("assistant", ["Red."])], [6], False, False),
    ([("user", [IMAGE, IMAGE, "Spot the difference."]), ("assistant", ["None."])], [4, 9], False, False),
    ([("user", [VIDEO, "What happens?"]), ("assistant", ["A dog runs.\n\nThen it stops."])], [12], False, False),
    ([("user", ["Compare ", IMAGE, " with ", VIDEO, ", please."]), ("assistant", ["\n They're the same: 图"]), ("user", ["\r\nSure? "]), ("assistant", [" Yes"])], [2, 3], False, False),
    ([("user", [IMAGE, "Which?"]), ("assistant", ["This: ", IMAGE, " one"])], [1, 2], False, False),
    ([("user", [IMAGE, VIDEO, IMAGE, "Say."])], [2, 2, 1], True, True),
    ([("system", [""]), ("user", [""]), ("assistant", [""])], [], False, False),
    ([("user", ["e\u0301 and <|endoftext|> and <tool_call>"]), ("assistant", ["\u0301x <|im_end|> y"])], [], True, False),
]


def cases(tokenizer):
    out = []
    for turns, counts, prompt, numbered in CONVERSATIONS:
        def part(text):
            return {"type": "image"} if text == IMAGE else {"type": "video"} if text == VIDEO else {"type": "text", "text": text}
        messages = [{"role": role, "content": [part(text) for text in parts]} for role, parts in turns]
        text = tokenizer.apply_chat_template(messages, chat_template=TEMPLATE, tokenize=False, add_generation_prompt=prompt, add_vision_id=numbered)
        pads, expanded, left = ("<|image_pad|>", "<|video_pad|>"), "", list(counts)
        while text:  # as the published processor does: each placeholder becomes as many as its picture has tokens
            at, pad = min((text.find(pad), pad) if pad in text else (len(text), "") for pad in pads)
            expanded += text[:at] + (pad * left.pop(0) if pad else "")
            text = text[at + len(pad):]
        out.append({"turns": [[role, parts] for role, parts in turns], "counts": counts, "generation_prompt": prompt, "number_pictures": numbered,
                    "text": expanded, "ids": tokenizer.encode(expanded, add_special_tokens=False)})
    return out
