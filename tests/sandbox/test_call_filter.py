"""The system call filter, run by a small interpreter of the kernel's own rules."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.sandbox.filter import (
    AARCH64,
    AF_UNIX,
    ALLOW,
    CLONE_NEW,
    ERRNO,
    KILL,
    MACHINES,
    TIOCSTI,
    X86_64,
    Machine,
    families,
    program,
)

EPERM = ERRNO | errno.EPERM
EVERY = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
DENIED = (
    *("ptrace", "mount", "umount2", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "userfaultfd"),
    *("perf_event_open", "kexec_load", "init_module", "finit_module", "pidfd_getfd", "process_vm_writev", "fsopen"),
)


def verdict(code: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel would do with a call: classic BPF over struct seccomp_data."""
    full = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    record = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *full)
    at, value = 0, 0
    while True:
        how, if_so, if_not, operand = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        match how:
            case 0x20:
                value = struct.unpack_from("<I", record, operand)[0]
            case 0x15:
                at += if_so if value == operand else if_not
            case 0x35:
                at += if_so if value >= operand else if_not
            case 0x45:
                at += if_so if value & operand else if_not
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"no such instruction: {how:#x}")


@EVERY
@pytest.mark.parametrize("network", [False, True])
def test_what_the_sandbox_needs_kept_out_is_denied(machine: Machine, network: bool) -> None:
    """Calls that look into others, build namespaces or load code are denied, with the network on as well."""
    code = program(machine, families(network=network))
    said = {name: verdict(code, machine.audit, machine.calls[name]) for name in DENIED}
    assert said == dict.fromkeys(DENIED, EPERM)


@EVERY
def test_ordinary_calls_pass(machine: Machine) -> None:
    """Every call that the table does not name is allowed."""
    code = program(machine, families(network=False))
    named = set(machine.calls.values())
    assert all(verdict(code, machine.audit, number) == ALLOW for number in range(470) if number not in named)


@EVERY
def test_no_socket_but_a_local_one_without_network(machine: Machine) -> None:
    """Without network only AF_UNIX can be opened; with it the internet families, and still no raw or exotic one."""
    off, on = (program(machine, families(network=network)) for network in (False, True))
    number = machine.calls["socket"]
    let = [family for family in range(50) if verdict(off, machine.audit, number, family) == ALLOW]
    assert let == [AF_UNIX]
    assert [family for family in range(50) if verdict(on, machine.audit, number, family) == ALLOW] == [1, 2, 10, 16]
    assert verdict(off, machine.audit, machine.calls["socketpair"], 1) == ALLOW
    assert verdict(off, machine.audit, number, 2) == ERRNO | errno.EAFNOSUPPORT


@EVERY
@given(upper=st.integers(0, 0xFFFFFFFF), signal=st.integers(0, 64), flag=st.integers(0, 31))
def test_threads_may_be_made_and_namespaces_not(machine: Machine, upper: int, signal: int, flag: int) -> None:
    """A clone with any flag for a namespace is denied, whatever stands in the register's upper half."""
    code = program(machine, families(network=False))
    flags = (1 << flag) | signal
    wanted = EPERM if flags & CLONE_NEW else ALLOW
    assert wanted == verdict(code, machine.audit, machine.calls["clone"], upper << 32 | flags)
    assert verdict(code, machine.audit, machine.calls["clone3"], upper) == ERRNO | errno.ENOSYS


@EVERY
@given(upper=st.integers(0, 0xFFFFFFFF))
def test_nobody_types_into_a_terminal(machine: Machine, upper: int) -> None:
    """TIOCSTI is denied by the 32 bits that the kernel looks at; other requests pass."""
    code = program(machine, families(network=False))
    number = machine.calls["ioctl"]
    assert verdict(code, machine.audit, number, 0, upper << 32 | TIOCSTI) == EPERM
    assert verdict(code, machine.audit, number, TIOCSTI, 0x5413) == ALLOW


@given(number=st.integers(0x40000000, 0xFFFFFFFF))
def test_the_second_set_of_numbers_is_no_way_around(number: int) -> None:
    """On x86-64 the numbers of the x32 set are refused, and calls of another architecture end the process."""
    code = program(X86_64, families(network=True))
    assert verdict(code, X86_64.audit, number) == ERRNO | errno.ENOSYS
    assert verdict(code, 0x40000003, number) == KILL
    assert verdict(code, AARCH64.audit, 41) == KILL


@EVERY
def test_a_filter_is_within_the_kernels_bounds(machine: Machine) -> None:
    """A program has at most 4096 instructions of 8 bytes and fits into a pipe at once."""
    code = program(machine, families(network=True))
    assert len(code) % 8 == 0
    assert len(code) < 4096
