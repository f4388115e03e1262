"""One rank of a job of three that goes wrong in the way that its first argument names, on the device of its second.

Collectives are given 8 seconds, so that ranks which wait in vain fail then.
"""

import contextlib
import datetime
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

CASE, DEVICE = sys.argv[1:3]
CULPRIT = 2

dist.init_process_group("gloo" if DEVICE == "cpu" else "nccl", timeout=datetime.timedelta(seconds=8))
rank = dist.get_rank()
values = torch.ones(4, device=DEVICE)
pair = dist.new_group([0, 1])


def start():
    for _ in range(3):
        dist.all_reduce(values)  # ALL
    if rank < 2:
        dist.broadcast(values, src=0, group=pair)  # PAIR


def forget():
    time.sleep(40)  # INSTEAD


def abort():
    threading.Timer(1, os.abort).start()
    dist.all_reduce(values)  # ABORT


def leave():
    os._exit(0)


def try_again_and_again():
    for _ in range(50):
        with contextlib.suppress(RuntimeError):
            dist.all_reduce(values)  # AGAIN


def send_and_forget():
    sent = dist.isend(values, 0)  # SEND
    forget()
    return sent


def fail():
    raise ValueError("no more data")  # RAISE


def run():
    if rank == CULPRIT and CASE == "missing":
        torch.zeros(1)
        return forget()
    if rank == CULPRIT and CASE == "sent":
        return send_and_forget()
    if rank == CULPRIT and CASE == "raised":
        return fail()
    if CASE == "left":
        return leave() if rank == CULPRIT else try_again_and_again()
    if rank == CULPRIT and CASE == "aborted":
        return abort()
    if rank == 0 and CASE == "aborted":
        time.sleep(4)
    if rank == CULPRIT and CASE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == CULPRIT and CASE == "slow":
        time.sleep(3)
    if rank == CULPRIT and CASE == "order":
        dist.broadcast(values, src=0)  # OTHER
    if rank == CULPRIT and CASE == "shape":
        dist.all_reduce(torch.ones(7, device=DEVICE))  # WRONG
    else:
        dist.all_reduce(values)  # WAIT
    if rank != CULPRIT and CASE == "order":
        dist.broadcast(values, src=0)


start()
run()
print(f"rank {rank} is done", flush=True)
dist.destroy_process_group()
