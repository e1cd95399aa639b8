"""The program that walls itself in by Landlock and then becomes the command: the weaker way, where namespaces fail.

Started as `python -I -S landlock.py ORDER WORD...` and of the standard library alone. ORDER is JSON: the folders and
files to `read` and to `write`, the system call filter (`seccomp`, hexadecimal), and the Landlock `version` to use.
Nothing else of the machine's files can be opened by what follows. Done in a program of its own, since between fork and
exec of a process with threads nothing of this could be.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
READING = EXECUTE | READ_FILE | READ_DIR
FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
NET, SCOPES = 0b11, 0b11
"""Bind and connect over TCP; abstract sockets of others and signals to others."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def main() -> None:
    """Raise the walls, then become the command."""
    order: dict[str, Any] = json.loads(sys.argv[1])
    try:
        restrict(order["read"], order["write"], order["version"], network=order["network"])
        filter_calls(bytes.fromhex(order["seccomp"]))
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(f"elenco: the command was not run, it could not be walled in: {error}", file=sys.stderr)
        sys.exit(125)


def all_rights(version: int) -> int:
    """Every right on files that a version knows: what is handled and not given is denied."""
    return (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1


def restrict(read: list[str], write: list[str], version: int, *, network: bool) -> None:
    """Leave this process, for good, nothing but these folders and files. Raises OSError."""
    every = all_rights(version)
    attributes = struct.pack("=Q", every)
    if version >= 4:
        attributes += struct.pack("=Q", 0 if network else NET)
    if version >= 6:
        attributes += struct.pack("=Q", SCOPES)
    rules = _call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for path in read:
        _allow(rules, path, every & READING)
    for path in write:
        _allow(rules, path, every & ~(MAKE_CHAR | MAKE_BLOCK))
    _control(PR_SET_NO_NEW_PRIVS, 1, 0)
    _call(RESTRICT_SELF, ctypes.c_int(rules), 0)
    os.close(rules)


def filter_calls(program: bytes) -> None:
    """Have the kernel run a filter before each system call. Raises OSError."""
    code = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(code)))
    _control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(header))


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        rights &= FOR_FILES
    try:
        _call(ADD_RULE, ctypes.c_int(rules), PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def _call(number: int, *arguments: Any) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _control(option: int, first: int, second: int) -> None:
    zero = ctypes.c_ulong(0)
    if _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(first), ctypes.c_ulong(second), zero, zero) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    main()
