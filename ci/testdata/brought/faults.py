# SPDX-License-Identifier: Apache-2.0
"""What a loss may do besides computing one, in each of its calls. ci/containment.py says what must come of it."""
import ctypes
import os
import subprocess
import sys
import time

import torch
from losses import sound


def crash(log_probs, old_log_probs, advantages, mask):
    ctypes.string_at(0)


def hang(log_probs, old_log_probs, advantages, mask):
    time.sleep(3600)


def exception(log_probs, old_log_probs, advantages, mask):
    raise ValueError("not today")


def out_of_memory(log_probs, old_log_probs, advantages, mask):
    hoard = []
    while True:
        hoard.append(torch.ones(1 << 22))


def out_of_memory_in_python(log_probs, old_log_probs, advantages, mask):
    hoard = []
    while True:
        hoard.append(bytearray(1 << 20))


def closed_pipe(log_probs, old_log_probs, advantages, mask):
    os.closerange(3, 64)
    return sound(log_probs, old_log_probs, advantages, mask)


def garbage(log_probs, old_log_probs, advantages, mask):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"this is no frame")
        except OSError:
            pass
    return sound(log_probs, old_log_probs, advantages, mask)


def wrong_shape(log_probs, old_log_probs, advantages, mask):
    return log_probs * 2


def no_tensor(log_probs, old_log_probs, advantages, mask):
    return 0.5


def standard_output(log_probs, old_log_probs, advantages, mask):
    print("to standard output")
    os.write(1, b"and past Python\n")
    sys.stdout.flush()
    return sound(log_probs, old_log_probs, advantages, mask)


def exit_at_once(log_probs, old_log_probs, advantages, mask):
    os._exit(7)


def exit_politely(log_probs, old_log_probs, advantages, mask):
    sys.exit("enough")


def fork_that_returns(log_probs, old_log_probs, advantages, mask):
    os.fork()
    return sound(log_probs, old_log_probs, advantages, mask)


def fork_that_stays(log_probs, old_log_probs, advantages, mask):
    if os.fork() == 0:
        os.setsid()  # in no group of ours
        time.sleep(3600)
    return sound(log_probs, old_log_probs, advantages, mask)


def daemon(log_probs, old_log_probs, advantages, mask):
    subprocess.run(["sh", "-c", "sleep 3600 &"], start_new_session=True)  # its parent is gone
    return sound(log_probs, old_log_probs, advantages, mask)


def device_assert(log_probs, old_log_probs, advantages, mask):
    """What torch raises then; on a device it goes on raising it in every later call of the process."""
    raise RuntimeError("CUDA error: device-side assert triggered")
