"""What the last words of a program or its launcher ask for: the fix depends on who stopped it and over what.

Wordings are those of Open MPI, Slurm, PyTorch's launcher, the shell and CUDA's runtime.
"""

from __future__ import annotations

import re
from typing import Final

from gdiag.triage.case import Case

_NEVER_RAN: Final = (
    (
        r"not enough slots",
        "Give the launcher a slot for each rank (slots=N in the hostfile, or --host NAME:N, N the GPUs of a host), or start fewer ranks",
    ),
    (
        r"unrecognized arguments|invalid choice|error: argument|unexpected keyword argument",
        "Mend the command line or the configuration: the program stopped before it worked",
    ),
    (
        r"command not found|No module named|ModuleNotFoundError|ImportError|cannot open shared object|No such file or directory",
        "Put what is missing on every host, and compare PATH, LD_LIBRARY_PATH and the environment between them",
    ),
    (
        r"Address already in use|EADDRINUSE",
        "End the earlier job on that host, which holds the port, or choose another MASTER_PORT",
    ),
    (
        r"Connection refused|No route to host|Name or service not known|rendezvous",
        "Check that the first host is up and that all others reach it: MASTER_ADDR, MASTER_PORT, firewall, NCCL_SOCKET_IFNAME",
    ),
    (
        r"Permission denied|publickey|Host key verification",
        "Mend rights and keys: every host must read the files and, for mpirun, let the others log in without a password",
    ),
    (
        r"driver version is insufficient|no kernel image|system not yet initialized",
        "Install a driver and a build that fit the GPU and the CUDA version, and see that the fabric manager runs (nvidia-smi -q)",
    ),
)
"""Before the first step: nothing of the run's state is in question."""
_STOPPED: Final = (
    (
        r"/dev/shm.*No space left",
        "Give the container more shared memory (--shm-size, /dev/shm): NCCL and loader workers exchange data there",
    ),
    (
        r"No space left on device|Disk quota exceeded|StorageFull",
        "Free space or raise the quota there, or move checkpoints and caches to another file system; delete what was left half-written",
    ),
    (
        r"file write failed|failed writing file|unexpected pos \d+ vs \d+|Input/output error|Stale file handle|Read-only file system",
        "Check free space, quota and health of the file system that was written to (df, the kernel log, its server); delete what was left half-written",
    ),
    (
        r"bus error|SIGBUS|shared memory",
        "Give the container more shared memory (--shm-size, /dev/shm) or lower the loader's workers",
    ),
    (
        r"device-side assert",
        "Run the step again with CUDA_LAUNCH_BLOCKING=1: an index lies outside its table (token id, label or position)",
    ),
    (
        r"BackendCompilerFailed|_dynamo|inductor|triton",
        "Run once without torch.compile (TORCH_COMPILE_DISABLE=1) to see whether the compiler is at fault, and compare PyTorch and Triton versions",
    ),
    (
        r"Connection closed|reset by peer|(?:recv|send) failed|Broken pipe",
        "Look at the other end first: the peer ended or lost its link before this rank did, and its own last lines say why",
    ),
    (r"node failure", "Leave the node that failed out, and look at its kernel log before it returns"),
    (r"preempt", "Save a checkpoint on the scheduler's warning signal: the job was preempted, nothing in it failed"),
    (
        r"cancelled at",
        "Ask the scheduler who cancelled the job (sacct -j JOB --format=State,Reason): nothing in the log says that it failed",
    ),
    (
        r"\b(?:Type|Key|Value|Attribute|Index|Name|Assertion|NotImplemented|ZeroDivision|JSONDecode)(?:Error)\b",
        "Mend the program: the error is its own; read the traceback above that line, and try the mended one on one GPU first",
    ),
    (
        r"SIGTERM|signal:? ?15\b|\b15 death signal|exit ?code\s*:?\s*-?(?:143|15)\b",
        "Find who ended the job: the launcher ends all ranks with SIGTERM after the first one fails, a scheduler at its limit or for another job",
    ),
    (
        r"SIGKILL|signal:? ?9\b|\b9 death signal|exit ?code\s*:?\s*-?(?:137|9)\b|^\s*killed",
        "Look for the kernel's out-of-memory killer (dmesg) and the limits of container and job at that minute: no program catches SIGKILL",
    ),
    (
        r"SIGSEGV|SIGABRT|segmentation fault|segfault|core dumped|signal:? ?(?:6|11)\b|exit ?code\s*:?\s*-?(?:134|139|11|6)\b",
        "Get a backtrace of the first rank that crashed (core dump, PYTHONFAULTHANDLER=1) and compare driver, CUDA and NCCL with the last good run",
    ),
)
"""In the middle of a run."""


def at_the_end(case: Case) -> str | None:
    """What the last words ask for; None where they name nothing known."""
    words = _words(case)
    return next((action for pattern, action in (*_NEVER_RAN, *_STOPPED) if re.search(pattern, words, re.I)), None)


def never_ran(case: Case) -> bool:
    """Whether the program ended before it worked."""
    return any(re.search(pattern, _words(case), re.I) for pattern, _ in _NEVER_RAN)


def _words(case: Case) -> str:
    return str(case.value("text", "GD008") or case.value("failure", "GD705") or "")
