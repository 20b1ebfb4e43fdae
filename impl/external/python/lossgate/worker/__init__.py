# SPDX-License-Identifier: Apache-2.0
"""The Python worker: asks a loss that a user brings, as PROTOCOL.md says.

It needs nothing but torch (Python 3.9+, torch 2.1+) and runs in the user's interpreter: as a process of its own,
which boot.py or `python -m lossgate.worker` starts, or inside a test process as
`lossgate.worker.serving.serve(my_loss, request_fd, reply_fd)`.

Nothing is imported here: torch must wait until the process has moved its descriptors out of the subject's way.
From the bottom up:

    trouble, pytorch, remembering,
    layout                             what everything else needs
    frames                             bytes to tensors and back
    aliases, conversion, matching      where a parameter gets its argument from
    subject, loading, binding          the callable, and how it is called
    plan, inputs, result, settings     one step
    place, elements, operation,
    forward, backward, guilty          where a non-finite number begins
    conversation, serving, __main__    requests and answers
"""
