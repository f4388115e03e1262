"""A part of scripts/wheel: the releases of torch. Of each its headers and the names that its libraries export are kept;
the libraries themselves, some 400 MB, are replaced by empty ones of the same name and build-id."""

import ast
import hashlib
import shutil
import subprocess
import zipfile
from typing import NamedTuple

from wheel_tools import Failure, note

LIBRARIES = ["libtorch_cpu.so", "libc10.so", "libtorch.so", "libtorch_python.so"]
LINKED = ["libtorch_cpu.so", "libc10.so"]
# By these names devsan tells the two C++ ABIs apart.
ERROR_OF_ABI = {"cxx11": "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                "pre-cxx11": "_ZN3c105ErrorC1ENS_14SourceLocationESs"}
PYTHON = "3.11"  # the wheel of any Python has the same headers and libraries


class Release(NamedTuple):
    version: str
    abi: str | None  # None: as PyPI's build has it


class Torch(NamedTuple):
    release: Release
    folder: object    # holds torch/, as a directory in sys.path does
    commit: str       # git_version
    abi: str
    headers: str      # digest of what can be included, without the version's number
    exports: set      # empty where that build of the release is not at hand


def releases(path, chosen):
    listed = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            version, *abi = line.split()
            listed.append(Release(version, abi[0] if abi else None))
    unknown = set(chosen or ()) - {release.version for release in listed}
    if unknown:
        raise Failure(f"{path.name} does not list torch {', '.join(sorted(unknown))}")
    return [release for release in listed if not chosen or release.version in chosen]


def dynamic_names(library, which, kind=None):
    """The dynamic symbols that nm lists with the option `which`, of one kind or of all, without their versions."""
    listed = subprocess.run(["nm", "-D", which, "--format=posix", library], capture_output=True, text=True, check=True)
    fields = [line.split() for line in listed.stdout.splitlines()]
    return {field[0].split("@")[0] for field in fields if kind in (None, field[1])}


def build_id(library):
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
    return notes.split("Build ID:")[1].split()[0]


def make_stub(library, symbols, identity):
    """An empty library of the same name, so that what is linked with it names the real one."""
    source = library.with_suffix(".c")
    source.write_text("".join(f'void f{n}(void) __asm__("{symbol}");\nvoid f{n}(void) {{}}\n' for n, symbol in enumerate(symbols)))
    subprocess.run(["gcc", "-shared", "-nostdlib", "-fPIC", f"-Wl,-soname,{library.name}", f"-Wl,--build-id=0x{identity}",
                    "-o", library, source], check=True)
    source.unlink()


def unpack(tools, version, folder):
    """Fetches the wheel, and leaves of it what is needed."""
    note(f"Fetching torch {version}")
    download = folder.with_suffix(".download")
    shutil.rmtree(download, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    tools.run(tools.python, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--python-version", PYTHON,
              "--disable-pip-version-check", "-d", download, f"torch=={version}")
    with zipfile.ZipFile(next(download.glob("torch-*.whl"))) as wheel:
        names = [name for name in wheel.namelist() if name == "torch/version.py" or name.startswith("torch/include/") or
                 name in [f"torch/lib/{library}" for library in LIBRARIES]]
        wheel.extractall(folder, names)
    shutil.rmtree(download)
    (folder / "torch/__init__.py").touch()
    library_folder = folder / "torch/lib"
    exports = set().union(*(dynamic_names(library_folder / name, "--defined-only") for name in LIBRARIES if (library_folder / name).exists()))
    identities = {name: build_id(library_folder / name) for name in LINKED}
    abi = "cxx11" if any(name.startswith(ERROR_OF_ABI["cxx11"]) for name in exports) else "pre-cxx11"
    for name in LIBRARIES:
        (library_folder / name).unlink(missing_ok=True)
    for name in LINKED:
        make_stub(library_folder / name, [ERROR_OF_ABI[abi]] if name == "libc10.so" else [], identities[name])
    (folder / "exports.txt").write_text("\n".join(sorted(exports)))
    (folder / "abi.txt").write_text(abi)


def commit_of(version_file):
    for statement in ast.parse(version_file.read_text()).body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if getattr(target, "id", "") == "git_version":
            return ast.literal_eval(statement.value)
    raise Failure(f"{version_file} names no git_version")


def headers_digest(include):
    digest = hashlib.sha256()
    for path in sorted(include.rglob("*")):
        if path.is_file() and path.name not in ("version.h", "Version.h"):
            digest.update(str(path.relative_to(include)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def of_other_abi(folder, abi):
    """The same headers beside libraries that tell of the other ABI: torch's own index has such builds of 2.6."""
    other = folder.with_name(f"{folder.name}-{abi}")
    if not other.exists():
        (other / "torch/lib").mkdir(parents=True)
        for name in ("__init__.py", "version.py"):
            shutil.copy(folder / "torch" / name, other / "torch" / name)
        (other / "torch/include").symlink_to(folder / "torch/include")
        for name in LINKED:
            identity = hashlib.sha1(f"{folder.name} {abi} {name}".encode()).hexdigest()
            make_stub(other / "torch/lib" / name, [ERROR_OF_ABI[abi]] if name == "libc10.so" else [], identity)
    return other


def fetch(tools, release):
    folder = tools.folder / "torches" / release.version
    if not (folder / "abi.txt").exists():
        unpack(tools, release.version, folder)
    abi = (folder / "abi.txt").read_text()
    exports = set((folder / "exports.txt").read_text().split())
    commit = commit_of(folder / "torch/version.py")
    digest = headers_digest(folder / "torch/include")
    if release.abi not in (None, abi):
        return Torch(release, of_other_abi(folder, release.abi), commit, release.abi, digest, set())
    return Torch(release, folder, commit, abi, digest, exports)
