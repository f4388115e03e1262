"""A build backend (PEP 517, PEP 660) for one pure Python package, with nothing but the standard library."""

import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAME = "devsan"
ENTRY_POINTS = "[torchrun.logs_specs]\ndevsan = devsan.torchrun:TracedLogsSpecs\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: devsan\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def version():
    """The project's version, which is written in the top CMakeLists.txt alone."""
    text = (HERE.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(devsan VERSION ([0-9.]+)", text)[1]


def metadata():
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nRequires-Python: >=3.10\n"
            "Summary: What Python programs and torchrun need of devsan, the sanitizer for tensor devices\nLicense: Apache-2.0\n")


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def write_wheel(directory, contents):
    info = f"{NAME}-{version()}.dist-info"
    contents = {**contents, f"{info}/METADATA": metadata().encode(), f"{info}/WHEEL": WHEEL.encode(),
                f"{info}/entry_points.txt": ENTRY_POINTS.encode()}
    record = "".join(record_line(name, data) for name, data in contents.items()) + f"{info}/RECORD,,\n"
    wheel = pathlib.Path(directory) / f"{NAME}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", record)
    return wheel.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = sorted((HERE / NAME).glob("*.py"))
    return write_wheel(wheel_directory, {f"{NAME}/{file.name}": file.read_bytes() for file in files})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})
