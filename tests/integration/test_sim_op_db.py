"""Operators on simulated devices give what they give on the CPU, over the samples that PyTorch tests its operators with."""

import subprocess

import pytest

from harness import ROOT, is_cuda_build


@pytest.fixture
def op_db(devsan, python, torch_version):
    """Runs scripts/op_db; a difference between its table of exceptions and what it finds makes it fail."""
    if is_cuda_build(python) or torch_version != (2, 13):
        pytest.skip("the table of exceptions is that of the CPU build of torch 2.13")

    def run(*options):
        done = subprocess.run([ROOT / "scripts/op_db", "--devsan", devsan, "--python", python, *options],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]

    return run


def test_every_operator_agrees_with_the_cpu_on_some_samples(op_db):
    op_db("--quick")


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_every_operator_agrees_with_the_cpu_on_all_samples_and_dtypes(op_db):
    op_db()
