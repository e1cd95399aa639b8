"""The options of commands that run another one, and where that one begins: a table."""

from __future__ import annotations

import re

from .options import Options
from .words import names

_PLAIN = Options()
_SUDO_LONGS = (
    "askpass background bell preserve-env login non-interactive preserve-groups stdin set-home shell chdir= chroot="
    " group= host= prompt= role= type= command-timeout= user= other-user= close-from= help version no-update"
)
_UNSHARE = Options(
    "imnpuUCTrfc",
    "RwSG",
    "mount uts ipc net pid user cgroup time fork map-root-user map-current-user kill-child mount-proc keep-caps root="
    " wd= setuid= setgid= propagation=",
)

_KNOWN: dict[str, Options] = {
    "nohup": Options(longs="help version"),
    "nice": Options(values="n", longs="adjustment= help version", numbers=True),
    "timeout": Options("vfp", "ks", "foreground preserve-status verbose kill-after= signal= help version", operands=1),
    "gtimeout": Options("vfp", "ks", "foreground preserve-status verbose kill-after= signal=", operands=1),
    "stdbuf": Options(values="ioe", longs="input= output= error= help version"),
    "setsid": Options("cfw", longs="ctty fork wait help version"),
    "ionice": Options("t", "cn", "class= classdata= ignore help version", stops="pPu"),
    "chrt": Options("abdfiorRv", "TPD", "batch fifo idle other rr deadline reset-on-fork verbose", 1, stops="pm"),
    "taskset": Options("ac", longs="all-tasks cpu-list help version", operands=1, stops="p"),
    "numactl": Options("lb", "CmNpi", "cpunodebind= physcpubind= membind= interleave= preferred= localalloc all"),
    "command": Options("p", stops="vV"),
    "builtin": _PLAIN,
    "exec": Options("cl", "a"),
    "time": Options("apqv", "fo", "portability append verbose quiet format= output= help version", stops="V"),
    "gtime": Options("apqv", "fo", "portability append verbose quiet format= output="),
    "sudo": Options("AbBEHnPSNksi", "CDghpRrTtuU", _SUDO_LONGS, stops="lvKV", assigns=True),
    "doas": Options("nsL", "Cu"),
    "pkexec": Options(longs="disable-internal-agent user= help version"),
    "gosu": Options(operands=1),
    "su-exec": Options(operands=1),
    "chroot": Options(longs="groups= userspec= skip-chdir help version", operands=1),
    "unshare": _UNSHARE,
    "strace": Options("cCdfFhiknqrtTvVwxyYzZD", "abeEIoOpPsSUuX"),
    "ltrace": Options("bcCfhiLrStTV", "aAdeDlnopsuwFxX"),
    "valgrind": Options("qv", any_long=True),
    "nsenter": Options(
        "amuinpCUTrwFZ",
        "tSG",
        "all target= mount uts ipc net pid cgroup user time setuid= setgid= root wd preserve-credentials no-fork",
    ),
    "systemd-run": Options(
        "tPSqdGr",
        "upEHM",
        "user system scope unit= property= description= slice= remain-after-exit service-type= uid= gid= nice= quiet"
        " working-directory= same-dir setenv= pty pipe shell collect wait no-block on-active= on-boot= on-calendar=",
    ),
    "setpriv": Options(
        "d",
        "",
        "reuid= regid= ruid= euid= rgid= egid= groups= inh-caps= ambient-caps= bounding-set= securebits= pdeathsig="
        " clear-groups keep-groups init-groups no-new-privs nnp reset-env",
    ),
    "prlimit": Options(any_long=True),
    "cpulimit": Options("zifvkrs", "lpePc"),
    "chpst": Options("vP012L", "ubneldmfcorptU"),
    "unbuffer": Options("p"),
    "cgexec": Options(values="g", longs="sticky"),
    "sshpass": Options("e", "pfdP"),
    "logsave": Options("asv", operands=1),
    "ssh-agent": Options("cDdsk", "aEt"),
    "busybox": Options(longs="list list-full install= help"),
    "toybox": _PLAIN,
    "flock": Options(
        "sxeunoFv",
        "wE",
        "shared exclusive unlock nonblock nb close no-fork verbose timeout= wait= command= help",
        1,
        "",
        "c",
    ),
    "setarch": Options("BFILRSTXZv", longs="addr-no-randomize verbose"),
    "fakeroot": Options(values="lsibfuk"),
    "firejail": Options(any_long=True),
    "caffeinate": Options("dimsu", "tw"),
    "proxychains": Options("q", "f"),
    "proxychains4": Options("q", "f"),
    "dbus-run-session": Options(longs="config-file= dbus-daemon="),
    "xvfb-run": Options("al", "efnspw", "auto-servernum auto-display server-args= error-file="),
    "entr": Options("acdnprsxz"),
    "envdir": Options(operands=1),
    "faketime": Options(operands=1),
    "tini": Options("svgw", "pe"),
}
WRAPPERS: dict[str, Options] = _KNOWN | dict.fromkeys(
    names(
        "linux32 linux64 i386 x86_64 arch uname26 rlwrap torsocks torify eatmydata chronic annotate-output ifne"
        " dumb-init systemd-inhibit bwrap proot catchsegv trickle softlimit setlock heaptrack runcon mpirun"
        " mpiexec srun winpty cronic optirun primusrun padsp gamemoderun lxc-execute sem nodemon watchexec"
        " hyperfine retry memusage choom uclampset coresched schedtool daemonize start-stop-daemon run-parts"
        " with-contenv"
    ),
    _PLAIN,
)

# Tools of a language that run one of a project's programs: the words that lead to it.
RUNNERS: dict[str, tuple[str, ...]] = {
    "npx": ("",),
    "pnpx": ("",),
    "bunx": ("",),
    "uvx": ("",),
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "bun": ("x",),
    "uv": ("run", "tool run"),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pipx": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "bundle": ("exec",),
    "mise": ("exec", "x"),
    "asdf": ("exec",),
    "rbenv": ("exec",),
    "pyenv": ("exec",),
    "nodenv": ("exec",),
    "stack": ("exec",),
    "cabal": ("exec",),
    "opam": ("exec",),
    "op": ("run",),
    "doppler": ("run",),
    "dotenv": ("run", ""),
    "direnv": ("exec",),
    "aws-vault": ("exec",),
    "chamber": ("exec",),
    "rustup": ("run",),
    "nix": ("develop", "shell"),
}
LOADER = re.compile(r"ld(?:-linux|-musl|64)?[-.\w]*\.so\b|rtld")
RUNNER_OPERANDS = {"direnv": 1, "aws-vault": 1, "chamber": 1, "rustup": 1}
RUNNER_OPTIONS = Options("yqv", "p", "yes quiet package= with= extra= no-install frozen locked offline silent")
