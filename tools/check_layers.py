#!/usr/bin/env python3
"""Checks that each file includes only what its component may see (docs/ARCHITECTURE.md, components).

usage: check_layers.py [--self-test]
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# component: (folder, the components whose public headers it may include)
COMPONENTS = {
    "base": ("sdk/base", []),
    "explore": ("sdk/explore", ["base"]),
    "layout": ("sdk/layout", ["base"]),
    "transport": ("transport", ["base", "layout"]),
    "torch": ("transport/torch", ["base", "layout", "transport"]),
    "actors": ("actors", ["base", "layout", "transport"]),
    "parallel": ("sdk/parallel", ["base", "layout", "transport", "torch"]),
    "stage": ("sdk/stage", ["base", "layout", "transport", "torch", "actors", "parallel"]),
    "train": ("sdk/train", ["base", "layout", "transport", "torch", "actors", "parallel", "stage"]),
    "testing": ("sdk/testing", ["base", "layout", "transport", "torch", "actors", "parallel", "stage"]),
}
ALL = list(COMPONENTS)
TORCH_HEADERS_IN = {"torch", "parallel", "stage", "train", "testing"}  # components that may name LibTorch
PUREST = {"base", "layout"}  # their sources, too, include nothing but std, tl::expected and Troupe
CAF_FOLDERS = ("actors/src/", "tests/actors/", "tests/bench/", "tools/bench/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(ATen|c10|torch)/")
POSIX = re.compile(r"^(sys/\w+|unistd|pthread|poll|fcntl|errno|signal|sched|omp|dlfcn)\.h$")


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def component_of(relative):
    """The component whose folder holds the file, or None (tests, samples, tools)."""
    best = None
    for name, (folder, _) in COMPONENTS.items():
        if relative.startswith(folder + "/") and (best is None or len(folder) > len(COMPONENTS[best][0])):
            best = name
    return best


def fault_of(relative, quote, header):
    """Why the file may not include the header, or None."""
    component = component_of(relative)
    public = "/include/troupe/" in relative
    own_header = relative.endswith(".hpp")
    if header.startswith("caf/"):
        return None if relative.startswith(CAF_FOLDERS) else "CAF is private to actors/src"
    if header == "torch/torch.h" and own_header:
        return "torch/torch.h costs 22 s a file: name the header you need"
    if header == "troupe/troupe.hpp":
        return "the umbrella header is for users" if component else None
    if header.startswith("troupe/"):
        seen = header.split("/")[1]
        if seen not in COMPONENTS:
            return f"there is no component {seen}"
        if component and seen != component and seen not in COMPONENTS[component][1]:
            return f"{component} may not see {seen}"
        if quote == '"':
            return 'write <troupe/...> for a public header'
        return None
    if component is None or (quote == '"' and not public):
        return None
    if TORCH.match(header):
        return None if component in TORCH_HEADERS_IN else f"{component} may not see LibTorch"
    if header == "tl/expected.hpp" or re.fullmatch(r"[a-z_0-9]+", header):
        return None
    if not public and (component not in PUREST or POSIX.match(header)):
        return None
    return "a public header names only std, tl::expected, Troupe and (where allowed) LibTorch" if public \
        else f"{component} includes no third party"


def check(root):
    faults = []
    for top in ("sdk", "transport", "actors", "samples", "tests", "tools"):
        for path in sorted((root / top).rglob("*.[ch]pp")):
            relative = path.relative_to(root).as_posix()
            for number, quote, header in includes(path):
                fault = fault_of(relative, quote, header)
                if fault:
                    faults.append(f"{relative}:{number}: includes {header}: {fault}")
    return faults


BAD = {
    "sdk/base/include/troupe/base/a.hpp": "#include <troupe/layout/mesh.hpp>",
    "sdk/layout/src/a.cpp": "#include <fmt/format.h>",
    "sdk/stage/src/b.cpp": "#include <caf/all.hpp>",
    "actors/include/troupe/actors/a.hpp": "#include <caf/actor.hpp>",
    "actors/src/a.cpp": "#include <ATen/ATen.h>",
    "transport/include/troupe/transport/a.hpp": "#include <ucp/api/ucp.h>",
    "sdk/parallel/include/troupe/parallel/a.hpp": "#include <torch/torch.h>",
    "sdk/stage/include/troupe/stage/a.hpp": "#include <troupe/testing/a.hpp>",
    "transport/torch/src/a.cpp": "#include <troupe/actors/pool.hpp>",
}
GOOD = {
    "sdk/base/src/a.cpp": "#include <vector>\n#include <unistd.h>\n#include <troupe/base/a.hpp>",
    "actors/src/a.cpp": '#include "core.hpp"\n#include <caf/all.hpp>\n#include <troupe/transport/group.hpp>',
    "sdk/stage/include/troupe/stage/a.hpp": "#include <ATen/core/Tensor.h>\n#include <tl/expected.hpp>",
    "samples/x/main.cpp": "#include <troupe/troupe.hpp>\n#include <stb/stb_image.h>",
}


def self_test():
    for files, wanted in ((BAD, 1), (GOOD, 0)):
        for name, text in files.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, name)
                path.parent.mkdir(parents=True)
                path.write_text(text + "\n")
                faults = check(Path(folder))
                if len(faults) != wanted:
                    return [f"self-test: {name}: {wanted} fault expected, got {faults}"]
    return []


if __name__ == "__main__":
    found = self_test() if "--self-test" in sys.argv else check(ROOT)
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
