#!/usr/bin/env python3
"""Pictures and what transformers' Qwen2-VL image processor makes of them; a table of smart_resize.

usage: make_cases.py            (PyPI transformers==5.24.0, pillow==13.0.0, numpy; not run in CI, the data is committed)

Writes NAME.png, NAME.u8 (pixel values brought back to bytes, [patches, values], rounded; the first `rows` rows) and cases.json;
decode/NAME.EXTENSION in many formats, with size and FNV-1a hash of their RGB bytes in cases.json.
All pictures are drawn here; nothing is taken from elsewhere.
"""
import json
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps
from transformers.image_transforms import convert_to_rgb
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil, smart_resize

HERE = Path(__file__).parent
BOUNDS = {"shortest_edge": 56 * 56, "longest_edge": 56 * 84}


def gradient(width, height):
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([x * 255 // max(width - 1, 1), y * 255 // max(height - 1, 1), (x + y) % 256], -1).astype(np.uint8))


def noise(width, height, seed):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def drawing(width, height):
    picture = Image.new("RGB", (width, height), (250, 250, 240))
    draw = ImageDraw.Draw(picture)
    for i in range(0, width, 7):
        draw.line((i, 0, width - i, height), fill=(i * 5 % 256, 20, 200 - i % 200), width=2)
    draw.ellipse((width // 4, height // 4, 3 * width // 4, 3 * height // 4), outline=(0, 0, 0), width=3, fill=(255, 64, 0))
    return picture


def with_alpha(width, height):
    picture = drawing(width, height).convert("RGBA")
    picture.putalpha(gradient(width, height).convert("L"))
    return picture


PICTURES = {
    "gradient": (gradient(83, 61), 14, 2, 2),
    "noise_shrunk": (noise(201, 130, 1), 14, 2, 2),
    "tiny_enlarged": (noise(9, 5, 2), 14, 2, 2),
    "tall": (drawing(21, 190), 14, 2, 2),
    "wide": (drawing(300, 20), 14, 2, 2),
    "as_it_is": (drawing(84, 56), 14, 2, 2),
    "rows_first": (noise(60, 210, 4), 14, 2, 2),
    "alpha": (with_alpha(90, 70), 14, 2, 2),
    "grey": (gradient(70, 77).convert("L"), 14, 2, 2),
    "palette": (drawing(120, 75).convert("P", palette=Image.Palette.ADAPTIVE, colors=32), 14, 2, 2),
    "patch_4_merge_3_temporal_1": (drawing(97, 50), 4, 1, 3),
}


def formats():
    """(name, picture, how it is saved): colour subsampled and not, progressive, CMYK, turned by Exif, every kind of transparency."""
    photo = Image.blend(drawing(45, 38), noise(45, 38, 5), 0.2)
    yield "subsampled.jpg", photo, {"quality": 80, "subsampling": 2}
    yield "full_colour.jpg", photo, {"quality": 90, "subsampling": 0}
    yield "progressive.jpg", photo, {"quality": 80, "progressive": True}
    yield "grey.jpg", photo.convert("L"), {"quality": 80}
    yield "cmyk.jpg", photo.convert("CMYK"), {"quality": 80}
    for orientation in range(2, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield f"turned_{orientation}.jpg", drawing(14, 9), {"exif": exif, "quality": 70}
    exif = Image.Exif()
    exif[0x0112] = 6
    yield "turned.png", drawing(14, 9), {"exif": exif}
    yield "grey_alpha.png", with_alpha(20, 13).convert("LA"), {}
    palette = photo.convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    yield "palette_transparent.png", palette, {"transparency": 3}
    yield "colour_transparent.png", drawing(20, 13), {"transparency": (250, 250, 240)}
    yield "one_bit.png", photo.convert("1"), {}
    yield "gif_transparent.gif", palette, {"transparency": 2}
    yield "plain.bmp", drawing(20, 13), {}
    yield "plain.tga", drawing(20, 13), {}
    yield "plain.ppm", drawing(20, 13), {}


def decoded(path):
    """As transformers' load_image turns it and convert_to_rgb makes it RGB."""
    rgb = convert_to_rgb(ImageOps.exif_transpose(Image.open(path)), return_numpy=True)
    value = 0xCBF29CE484222325
    for byte in rgb.tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return {"width": rgb.shape[1], "height": rgb.shape[0], "hash": value}


def main():
    (HERE / "decode").mkdir(exist_ok=True)
    decodes = {}
    for name, picture, how in formats():
        picture.save(HERE / "decode" / name, **how)
        decodes[name] = decoded(HERE / "decode" / name)
    cases = {}
    for name, (picture, patch, temporal, merge) in PICTURES.items():
        picture.save(HERE / f"{name}.png", optimize=True)
        processor = Qwen2VLImageProcessorPil(patch_size=patch, temporal_patch_size=temporal, merge_size=merge, size=dict(BOUNDS))
        out = processor(images=[picture], return_tensors="np")
        values = np.asarray(out["pixel_values"], dtype=np.float64)
        plane = patch * patch * temporal
        bytes_ = np.empty_like(values)
        for channel in range(3):
            part = slice(channel * plane, (channel + 1) * plane)
            bytes_[:, part] = (values[:, part] * processor.image_std[channel] + processor.image_mean[channel]) * 255
        rounded = np.rint(bytes_)
        assert np.abs(bytes_ - rounded).max() < 1e-3, name
        rows = min(len(rounded), 40000 // rounded.shape[1])
        rounded[:rows].astype(np.uint8).tofile(HERE / f"{name}.u8")
        cases[name] = {"patch": patch, "temporal": temporal, "merge": merge, "grid": np.asarray(out["image_grid_thw"])[0].tolist(), "rows": rows, "width": rounded.shape[1],
                       "first": [float(v) for v in values[0, :4]]}
    generator = random.Random(3)
    sizes = []
    for _ in range(300):
        height, width = (int(2 ** generator.uniform(0, 12)) for _ in range(2))
        factor = generator.choice([28, 28, 12, 32, 14])
        low, high = generator.choice([(3136, 12845056), (56 * 56, 28 * 28 * 1280), (100, 4000)])
        try:
            to = list(smart_resize(height, width, factor, low, high))
        except ValueError:
            to = None  # aspect ratio
        sizes.append([height, width, factor, low, high, to])
    (HERE / "cases.json").write_text(json.dumps({"bounds": list(BOUNDS.values()), "cases": cases, "decode": decodes, "smart_resize": sizes}) + "\n")


if __name__ == "__main__":
    main()
