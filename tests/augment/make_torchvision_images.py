"""What torchvision makes of images, for torchvision_test.cc.

    make_torchvision_images.py FOLDER

cases.txt has a line a case: operation, interpolation, channels, width and height
before and after, and the numbers of the operation; I.before and I.after are the
bytes of case I. space.txt has every operation and magnitude that the policies
may draw.
"""

import pathlib
import sys

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

MODES = {"bilinear": InterpolationMode.BILINEAR,
         "bicubic": InterpolationMode.BICUBIC}
FILL = (124, 116, 104)


def photograph(width, height, channels, seed):
    """Smooth shades, edges, noise, and levels at both ends."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    layers = []
    for c in range(channels):
        wave = 128 + 90 * np.sin(x / (3 + c) + seed) * np.cos(y / (5 - c))
        wave[height // 3:height // 2, width // 4:width // 2] += 120 - 90 * c
        layers.append(wave + random.normal(0, 12, wave.shape))
    pixels = np.clip(np.stack(layers, 2), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])


class Cases:
    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def add(self, name, mode, before, after, *numbers):
        index = len(self.lines)
        for image, ending in ((before, "before"), (after, "after")):
            path = self.folder / f"{index}.{ending}"
            path.write_bytes(np.asarray(image).tobytes())
        channels = 1 if before.mode == "L" else 3
        self.lines.append(" ".join(map(str, (
            name, mode, channels, *before.size, *after.size, *numbers))))


def sizes(cases):
    for mode, value in MODES.items():
        for i, (width, height) in enumerate(((64, 64), (37, 29), (29, 61),
                                             (500, 375), (9, 200))):
            for channels in (1, 3):
                image = photograph(width, height, channels, i)
                for shorter, size in ((32, 28), (29, 29), (72, 64), (100, 75)):
                    after = F.center_crop(F.resize(image, shorter, value), size)
                    cases.add("centre", mode, image, after, shorter, size)
                for box in ((0, 0, height, width), (1, 3, height // 2, 5),
                            (height // 3, 2, height // 4, width // 2)):
                    for size in (7, 32, 90):
                        after = F.resized_crop(image, *box, [size, size], value)
                        cases.add("part", mode, image, after, *box, size)


def operations(cases):
    def both(name, mode, magnitude, function):
        for channels in (1, 3):
            for size in ((40, 40), (33, 21)):
                image = photograph(*size, channels, len(cases.lines))
                cases.add(name, mode, image, function(image), magnitude)

    def of_policy(name, magnitude, mode="bilinear"):
        applied = magnitude
        if name in ("Brightness", "Color", "Contrast", "Sharpness"):
            applied = magnitude + 1  # what it is a factor of
        both(name, mode, applied, lambda image: autoaugment._apply_op(
            image, name, magnitude, MODES[mode],
            list(FILL) if image.mode == "RGB" else FILL[0]))

    for mode in MODES:
        for name, magnitudes in (
                ("ShearX", (-0.3, 0.01, 0.27, 0.99)), ("ShearY", (-0.99, 0.2)),
                ("TranslateX", (-32.0, 0.0, 5.0)), ("TranslateY", (-3.0, 12.0)),
                ("Rotate", (-135.0, -90.0, -4.5, 0.0, 17.0, 30.0, 90.0))):
            for magnitude in magnitudes:
                of_policy(name, magnitude, mode)
    for name in ("Brightness", "Color", "Contrast", "Sharpness"):
        for magnitude in (-0.99, -0.9, -0.27, 0.0, 0.31, 0.9, 0.99):
            of_policy(name, magnitude)
    for bits in range(2, 9):
        of_policy("Posterize", bits)
    for threshold in (0.0, 8.5, 127.5, 178.5, 255.0):
        of_policy("Solarize", threshold)
    for name in ("AutoContrast", "Equalize", "Invert", "Identity"):
        of_policy(name, 0.0)
    for turns in (-0.5, -0.1, 0.0, 0.01, 0.3, 0.5):
        both("Hue", "bilinear", turns, lambda image: F.adjust_hue(image, turns))
    for amount in (0, 99, 110):
        table = [min(255, i + amount) if i < 128 else i for i in range(256)]
        both("SolarizeAdd", "bilinear", amount,
             lambda image: image.point(table * len(image.getbands())))
    # Few levels, and one: histograms with gaps.
    for levels in ((7,), (3, 200), (0, 1, 2)):
        pixels = np.random.default_rng(1).choice(levels, (20, 30)).astype(np.uint8)
        image = Image.fromarray(pixels)
        for name in ("AutoContrast", "Equalize", "Contrast"):
            cases.add(name, "bilinear", image,
                      autoaugment._apply_op(image, name, 0.5, None, None), 1.5)


def space():
    """policy operation bin magnitude, of images of 331 x 662"""
    policies = {
        "ra": autoaugment.RandAugment()._augmentation_space(31, (662, 331)),
        "ta_wide": autoaugment.TrivialAugmentWide()._augmentation_space(31)}
    lines = []
    for policy, operations_of in policies.items():
        for name, (magnitudes, signed) in operations_of.items():
            values = (magnitudes.tolist() if magnitudes.ndim else
                      [0.0] * 31)
            for index, value in enumerate(values):
                for sign in (1, -1) if signed else (1,):
                    number = sign * float(value)
                    if name.startswith("Translate"):
                        number = int(number)
                    if name in ("Brightness", "Color", "Contrast", "Sharpness"):
                        number += 1
                    lines.append(f"{policy} {name} {index} {number}")
    return lines


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = Cases(folder)
    sizes(cases)
    operations(cases)
    (folder / "cases.txt").write_text("\n".join(cases.lines) + "\n")
    (folder / "space.txt").write_text("\n".join(space()) + "\n")


main()
