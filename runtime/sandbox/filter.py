"""The system calls a command may not make, as a classic BPF program that the kernel runs before each call. Pure.

Denied are the ways to look into other processes, to build new namespaces and mounts, to load code into the kernel, and
the large interfaces that no developer's command needs. Calls are compared by the 32 bits the kernel itself looks at,
so that garbage in the upper half of a register opens nothing.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping

import attrs

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000
KILL = 0x80000000
ERRNO = 0x00050000

NUMBER, ARCHITECTURE = 0, 4
ARGUMENTS = (16, 24)
"""Where in the kernel's record the low halves of the first two arguments are, on little-endian machines."""

X32 = 0x40000000
CLONE_NEW = 0x7E020000
"""All the flags of clone that make a namespace, but that of time, which clone cannot make."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16


@attrs.frozen
class Machine:
    """A processor as the filter sees it: the kernel's name for its calls, and their numbers."""

    name: str
    audit: int
    calls: Mapping[str, int]
    has_x32: bool = False


X86_64 = Machine(
    "x86_64",
    0xC000003E,
    {
        "socket": 41, "socketpair": 53, "clone": 56, "ioctl": 16, "clone3": 435,
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429,
        "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
        "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "fanotify_init": 300,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "add_key": 248, "request_key": 249, "keyctl": 250,
        "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
        "create_module": 174, "query_module": 178, "get_kernel_syms": 177,
        "open_by_handle_at": 304, "name_to_handle_at": 303, "lookup_dcookie": 212, "uselib": 134, "nfsservctl": 180,
        "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "syslog": 103,
        "settimeofday": 164, "clock_settime": 227, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
        "vhangup": 153, "_sysctl": 156,
    },
    has_x32=True,
)  # fmt: skip
AARCH64 = Machine(
    "aarch64",
    0xC00000B7,
    {
        "socket": 198, "socketpair": 199, "clone": 220, "ioctl": 29, "clone3": 435,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "pidfd_getfd": 438, "kcmp": 272,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "open_tree": 428, "move_mount": 429,
        "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467,
        "unshare": 97, "setns": 268, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "fanotify_init": 262,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "add_key": 217, "request_key": 218, "keyctl": 219,
        "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
        "open_by_handle_at": 265, "name_to_handle_at": 264, "lookup_dcookie": 18, "nfsservctl": 42,
        "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "quotactl": 60, "quotactl_fd": 443, "syslog": 116,
        "settimeofday": 170, "clock_settime": 112, "sethostname": 161, "setdomainname": 162, "vhangup": 58,
    },
)  # fmt: skip
MACHINES: Mapping[str, Machine] = {each.name: each for each in (X86_64, AARCH64)}

_TREATED = ("socket", "socketpair", "clone", "clone3", "ioctl")
"""Calls that are not simply denied: what they do depends on an argument."""


def families(*, network: bool, unix: bool = True) -> tuple[int, ...]:
    """The kinds of sockets a command may make."""
    local = (AF_UNIX,) if unix else ()
    return (*local, AF_INET, AF_INET6, AF_NETLINK) if network else local


def program(machine: Machine, sockets: tuple[int, ...]) -> bytes:
    """The filter for a machine; `sockets` are the address families that may be opened. Pairs are always local."""
    denied = ERRNO | errno.EPERM
    code: list[bytes] = [
        _load(ARCHITECTURE),
        _jump(EQUAL, machine.audit, 1, 0),
        _return(KILL),  # Another way into the kernel, where the same numbers mean other calls.
        _load(NUMBER),
    ]
    if machine.has_x32:
        code += [_jump(AT_LEAST, X32, 0, 1), _return(ERRNO | errno.ENOSYS)]
    for name, number in machine.calls.items():
        if name not in _TREATED:
            code += [_jump(EQUAL, number, 0, 1), _return(denied)]
    # Its flags are in memory, where no filter can look; without it, libraries fall back to clone.
    code += [_jump(EQUAL, machine.calls["clone3"], 0, 1), _return(ERRNO | errno.ENOSYS)]
    code += _where(machine.calls["clone"], 0, [_jump(ANY_BIT, CLONE_NEW, 0, 1), _return(denied)])
    typing = [each for command in (TIOCSTI, TIOCLINUX) for each in (_jump(EQUAL, command, 0, 1), _return(denied))]
    code += _where(machine.calls["ioctl"], 1, typing)
    unsupported = _return(ERRNO | errno.EAFNOSUPPORT)
    for name, allowed in (("socket", sockets), ("socketpair", (AF_UNIX,))):
        let = [each for family in allowed for each in (_jump(EQUAL, family, 0, 1), _return(ALLOW))]
        code += _where(machine.calls[name], 0, [*let, unsupported])
    return b"".join([*code, _return(ALLOW)])


def _where(number: int, argument: int, then: list[bytes]) -> list[bytes]:
    """What is looked at where the call is this one; after it the call's number is loaded again."""
    body = [_load(ARGUMENTS[argument]), *then, _load(NUMBER)]
    return [_jump(EQUAL, number, 0, len(body)), *body]


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", LOAD, 0, 0, offset)


def _jump(how: int, value: int, if_so: int, if_not: int) -> bytes:
    return struct.pack("<HBBI", how, if_so, if_not, value)


def _return(what: int) -> bytes:
    return struct.pack("<HBBI", RETURN, 0, 0, what)
