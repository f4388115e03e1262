"""Libraries that start a program's processes in ways of their own."""

import pytest

from places import PROGRAM, REFUSED, Place


@pytest.fixture
def place(devsan, newest_libraries, tmp_path):
    return Place(devsan, newest_libraries, tmp_path)


pytestmark = pytest.mark.slow


def test_accelerate_launches_a_process(place):
    file = place.file("toy.py", PROGRAM)
    place.run(place.python, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1", "--num_machines", "1",
              "--mixed_precision", "no", "--dynamo_backend", "no", "--num_cpu_threads_per_process", "1", file)
    assert (place.status, place.stdout) == (0, REFUSED), place.stderr
    place.found("toy.py")


def test_lightning_launches_a_second_process(place):
    place.file("toy.py", PROGRAM)
    main = place.file("main.py", """
        import lightning
        import toy

        if __name__ == "__main__":
            fabric = lightning.Fabric(accelerator="cpu", devices=2, strategy="ddp")
            fabric.launch()
            toy.run()
        """)
    place.run(place.python, main)
    assert place.status == 0 and place.stdout.count(REFUSED) == 2, place.stderr
    place.found("toy.py", count=2)


def test_deepspeed_launches_a_process(place):
    file = place.file("toy.py", PROGRAM)
    place.run(place.python, "-m", "deepspeed.launcher.runner", "--num_gpus", "1", file)
    assert place.status == 0 and REFUSED in place.stdout, place.stderr
    place.found("toy.py")
