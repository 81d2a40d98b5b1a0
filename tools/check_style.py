#!/usr/bin/env python3
"""Checks sizes, the one interface for waits and clocks, and that library code never prints or ends the process.

usage: check_style.py [--self-test]
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ("sdk/", "transport/", "actors/")
FOLDERS = ("sdk", "transport", "actors", "samples", "tests", "tools")

HEADER_LINES, SOURCE_LINES, FUNCTION_LINES = 200, 400, 40
# (path, function or "" for the whole file): why it may be longer
LONGER = {}

# (name, pattern, folders it is looked for in, paths where it is allowed, what to do instead)
BANNED = [
    ("wait, timer, clock or thread outside sdk/base and sdk/explore",
     r"std::condition_variable|\bsleep_(for|until)\b|\b(steady|system|high_resolution)_clock::now\b"
     r"|std::j?thread\b(?!::id|::hardware)|std::async\b|std::(counting|binary)_semaphore|std::(latch|barrier)\b",
     LIBRARY, ("sdk/base/", "sdk/explore/"), "use the interface in troupe/base"),
    ("output of a library",
     r"\b(?:std::)?f?printf\s*\(|\b(?:std::)?puts\s*\(|std::(cout|cerr|clog)\b",
     LIBRARY, ("sdk/base/src/log.cpp",), "log through the runtime's sink"),
    ("ends the process",
     r"(?:\bstd::|(?<![\w:])::|(?:^|[;{}])\s*)(?:quick_exit|_exit|exit|abort|terminate)\s*\(",
     LIBRARY, (), "return an Error"),
    # poll(2) cannot go through Condition: processes and their pipes are waited for in one place, by a thread of the Clock
    ("wait in the kernel outside the watcher of processes",
     r"(?<![\w.>])(?:::)?(?:ppoll|pselect|epoll_p?wait2?|sem_(?:timed)?wait|sigtimedwait|sigwait(?:info)?|(?:clock_)?nanosleep|usleep)\s*\("
     r"|(?<![\w:.>])::(?:poll|select|pause|sleep)\s*\(",
     LIBRARY, ("sdk/base/", "actors/src/process/watcher.cpp"), "use Condition, or have the watcher wait"),
    ("handles signals", r"\b(sigaction|std::signal|signal)\s*\(", LIBRARY, (), "signals belong to the host"),
]


def code_of(text):
    """The text with comments, literals and preprocessor lines blanked; lines stay where they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern|concept)\b[^()=]*$")


def functions(code):
    """(name, first line, lines) of each function body: a brace in a namespace or class that opens neither."""
    stack, line, head = [], 1, ""
    for char in code:
        if char == "{":
            inside = bool(stack) and stack[-1][0] != "container"
            container = not inside and (CONTAINER.search(head) or not head.strip())
            stack.append(("container" if container else "inside" if inside else "function", line, head))
            head = ""
        elif char == "}":
            if stack:
                kind, first, opened = stack.pop()
                if kind == "function":
                    name = re.search(r"([\w:~]+)\s*\(", opened)
                    yield (name.group(1) if name else "?"), first, line - first + 1
            head = ""
        elif char == ";":
            head = ""
        else:
            head += char
        line += char == "\n"


def check_file(relative, text):
    lines = text.count("\n")
    limit = HEADER_LINES if relative.endswith(".hpp") else SOURCE_LINES
    if lines > limit and (relative, "") not in LONGER:
        yield f"{relative}: {lines} lines, the limit is {limit}: split it"
    code = code_of(text)
    for name, first, count in functions(code):
        if count > FUNCTION_LINES and (relative, name) not in LONGER:
            yield f"{relative}:{first}: function {name} has {count} lines, the limit is {FUNCTION_LINES}: split it"
    for what, pattern, folders, allowed, instead in BANNED:
        if relative.startswith(folders) and not relative.startswith(allowed):
            for number, line in enumerate(code.splitlines(), 1):
                match = re.search(pattern, line)
                if match:
                    yield f"{relative}:{number}: {match.group(0).strip()}: {what}; {instead}"


def check(root):
    faults = []
    for top in FOLDERS:
        for path in sorted((root / top).rglob("*.[ch]pp")):
            faults += check_file(path.relative_to(root).as_posix(), path.read_text())
    return faults


LONG_BODY = "namespace a {\nint f(int x) {\n" + "  x += 1;\n" * 45 + "  return x;\n}\n}\n"
BAD = [
    ("sdk/base/include/troupe/base/a.hpp", "int x;\n" * 201),
    ("sdk/base/src/a.cpp", LONG_BODY),
    ("actors/src/a.cpp", "std::condition_variable c;\n"),
    ("actors/src/b.cpp", "void f() { std::this_thread::sleep_for(x); }\n"),
    ("transport/src/a.cpp", "auto t = std::chrono::steady_clock::now();\n"),
    ("sdk/stage/src/a.cpp", "void f() { std::thread t(g); }\n"),
    ("sdk/stage/src/b.cpp", 'void f() { std::cerr << "x"; }\n'),
    ("sdk/stage/src/c.cpp", 'void f() { printf("x"); }\n'),
    ("transport/src/b.cpp", "void f() { std::abort(); }\n"),
    ("transport/src/c.cpp", "void f() {\n  exit(1);\n}\n"),
    ("actors/src/c.cpp", "auto n = ::ppoll(p, 1, nullptr, nullptr);\n"),
    ("transport/src/d.cpp", "auto n = ::poll(p, 1, 100);\n"),
    ("actors/src/process/spawn.cpp", "void f() { usleep(100); }\n"),
]
GOOD = [
    ("sdk/base/src/clock.cpp", "auto t = std::chrono::steady_clock::now();\n"),
    ("actors/src/a.cpp", '// std::thread\nauto s = "printf(";\nstd::thread::id id;\nvoid g() { group.abort(); }\n'),
    ("actors/src/process/watcher.cpp", "auto n = ::ppoll(p, 1, nullptr, nullptr);\n"),
    ("transport/src/a.cpp", "void f() { context.poll(); flow::select(x); }\nvoid poll(int);\n"),
    ("actors/src/b.cpp", "namespace a {\nclass B {\n" + "  int f() { return 1; }\n" * 60 + "};\n}\n"),
]


def self_test():
    faults = [f"self-test: {name} passed, it should not" for name, text in BAD if not list(check_file(name, text))]
    for name, text in GOOD:
        faults += ["self-test: " + fault for fault in check_file(name, text)]
    with tempfile.TemporaryDirectory() as folder:  # and the walk over the tree finds a file
        path = Path(folder, BAD[0][0])
        path.parent.mkdir(parents=True)
        path.write_text(BAD[0][1])
        faults += [] if check(Path(folder)) else ["self-test: the bad tree passed"]
    return faults


if __name__ == "__main__":
    found = self_test() if "--self-test" in sys.argv else check(ROOT)
    print("\n".join(found) or "style: ok")
    sys.exit(bool(found))
