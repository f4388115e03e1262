"""A part of scripts/wheel: puts the wheel together. It depends on nothing, so that pip never touches a torch."""

import pathlib
import sys
import zipfile

import wheel_programs
from wheel_tools import note

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import wheel_backend  # noqa: E402 - found by the line above

TAG = "py3-none-manylinux_2_28_x86_64"
EXECUTABLE = 0o755
PLAIN = 0o644


def index(tools, slots):
    """Which slot is for which torch, by the commit that it was built from and its C++ ABI."""
    lines = [f"devsan-hooks 1 {' '.join(wheel_programs.identity(tools))}"]
    lines += [f"{torch.commit} {torch.abi} {slot.name}" for slot in slots for torch in slot.torches]
    return "\n".join(lines) + "\n"


def contents(root, tools, prefix, slots):
    """Every file of the wheel: its name there, its bytes, its mode."""
    data = f"{wheel_backend.NAME}-{wheel_backend.version()}.data"
    for file in sorted((root / "launch/devsan").glob("*.py")):
        yield f"devsan/{file.name}", file.read_bytes(), PLAIN
    yield f"{data}/scripts/devsan", (prefix / "bin/devsan").read_bytes(), EXECUTABLE
    for part in ("lib", "share"):
        for file in sorted((prefix / part).rglob("*")):
            if file.is_file():
                mode = EXECUTABLE if file.suffix == ".so" else PLAIN
                yield f"{data}/data/{file.relative_to(prefix)}", file.read_bytes(), mode
    yield f"{data}/data/lib/devsan/hooks/index", index(tools, slots).encode(), PLAIN
    for slot in slots:
        for file in sorted(slot.folder.iterdir()):
            yield f"{data}/data/lib/devsan/hooks/{slot.name}/{file.name}", file.read_bytes(), EXECUTABLE


def write(root, tools, prefix, slots, out):
    out.mkdir(parents=True, exist_ok=True)
    info = f"{wheel_backend.NAME}-{wheel_backend.version()}.dist-info"
    about = wheel_backend.WHEEL.replace("Tag: py3-none-any", f"Tag: {TAG}").replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    files = [*contents(root, tools, prefix, slots),
             (f"{info}/METADATA", (wheel_backend.metadata() + "\n" + (root / "README.md").read_text()).encode(), PLAIN),
             (f"{info}/WHEEL", about.encode(), PLAIN),
             (f"{info}/entry_points.txt", wheel_backend.ENTRY_POINTS.encode(), PLAIN),
             (f"{info}/licenses/LICENSE", (root / "LICENSE").read_bytes(), PLAIN)]
    record = "".join(wheel_backend.record_line(name, data) for name, data, _ in files) + f"{info}/RECORD,,\n"
    wheel = out / f"{wheel_backend.NAME}-{wheel_backend.version()}-{TAG}.whl"
    note(f"Writing {wheel.name}")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, mode in [*files, (f"{info}/RECORD", record.encode(), PLAIN)]:
            entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))  # equal contents give an equal wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel
