"""The options of interpreters that hold or load program text: a table."""

from __future__ import annotations

import attrs

from .words import names


@attrs.frozen
class Interpreter:
    """What is known of one: letters and long names (in any number of dashes) of options that hold or load code.

    `values`, `long_values`: other options that take a value. `flags`: letters without one. `reads`: without a file it
    reads its program from standard input. An option that is not known makes every later word suspect.
    """

    code: str = ""
    longs: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    values: str = ""
    flags: str = ""
    long_values: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    stops: frozenset[str] = attrs.field(default=names("--version --help -V -h -version -help"), converter=names)
    reads: bool = True
    words: bool = False
    """Whether its options are words after a single dash, so that letters mean nothing."""


PYTHON = Interpreter("c", "", "mWX", "bBdEhiIOPqRsStuvVx?", "check-hash-based-pycs")
_NODE = Interpreter(
    "epr",
    "eval print require import loader experimental-loader env-file",
    "C",
    "ich",
    "conditions input-type stack-trace-limit max-old-space-size inspect-port unhandled-rejections test-reporter"
    " test-reporter-destination test-name-pattern watch-path title trace-event-categories",
    "--version --help -v -h",
)
_RUBY = Interpreter(
    "erIxC", "require", "EFKTW0", "acdhlnpsSvwyU", "encoding external-encoding", "--version --help -v -h"
)
VIM = Interpreter("cSsuUWe", "cmd startuptime", "Trtw", "bdDfFgHlLmMnNoOpPRvVxyZAE", reads=False)
LISP = Interpreter("efl", "eval execute funcall load script batch-eval", "qQL", "", reads=False)

_MAIN: dict[str, Interpreter] = {
    "python": PYTHON,
    "pypy": PYTHON,
    "ipython": PYTHON,
    "jython": PYTHON,
    "micropython": PYTHON,
    "perl": Interpreter("eEMmIdxi", "", "0CFDl", "acfnpsSTtuUvVwWX", stops="--version --help -v -h -V"),
    "ruby": _RUBY,
    "jruby": _RUBY,
    "irb": _RUBY,
    "node": _NODE,
    "nodejs": _NODE,
    "tsx": _NODE,
    "ts-node": _NODE,
    "electron": _NODE,
    "deno": Interpreter(longs="eval repl preload import require", reads=True),
    "bun": Interpreter("epr", "eval print preload require", "", "bi", reads=False),
    "php": Interpreter("rRBEdc", "run process-code process-begin process-end define php-ini", "fStz", "aCeHilmnqsvw"),
    "lua": Interpreter("el", "", "", "ivEW", stops="-v"),
    "luajit": Interpreter("elbj", "", "", "iv", stops="-v"),
    "tclsh": Interpreter(),
    "wish": Interpreter("e"),
    "expect": Interpreter("cf", "", "b", "dDiNnv"),
    "julia": Interpreter("eELi", "eval print load", "pCtO", "q", "project threads procs optimize sysimage"),
    "Rscript": Interpreter("eg", "default-packages", reads=False),
    "R": Interpreter("ef", "file", "dg", ""),
    "octave": Interpreter("", "eval eval-file persist path", "p", "fHqVW"),
    "elixir": Interpreter("erS", "eval rpc-eval require erl", "", "", reads=False),
    "erl": Interpreter(longs="eval s run f boot config pa pz", words=True, reads=False),
    "scala": Interpreter("ei", "", "", "", reads=False),
    "groovy": Interpreter("ebc", "", "", "l", reads=False),
    "jshell": Interpreter("RJC", "startup", "", "qs"),
    "clojure": Interpreter("eirmMXAT", "eval init", reads=False),
    "clj": Interpreter("eirmMXAT", "eval init", reads=False),
    "ghc": Interpreter("eF", "", reads=False),
    "runghc": Interpreter("f"),
    "ghci": Interpreter("e"),
    "guile": Interpreter("clse", "", "L"),
    "racket": Interpreter("eftlrpk", "eval load require lib script main"),
    "sbcl": Interpreter(longs="eval load script userinit sysinit core"),
    "ecl": Interpreter(longs="eval load shell"),
    "clisp": Interpreter("xi"),
    "ocaml": Interpreter("eIw", "init"),
    "osascript": Interpreter("el", "", "s", "i"),
    "pwsh": Interpreter(longs="c command e ec enc encodedcommand f file configurationfile settingsfile", words=True),
    "gnuplot": Interpreter("ec", "", "", "dps"),
    "maxima": Interpreter("br", "batch batch-string run-string init"),
    "gdb": Interpreter(longs="ex iex eval-command init-eval-command x ix command init-command", words=True),
    "lldb": Interpreter("osOSQk", "one-line source source-before-file source-quietly one-line-before-file"),
    "vim": VIM,
    "emacs": LISP,
    "dc": Interpreter("ef", "expression file"),
    "m4": Interpreter("", "", "DUIBFHLNPSTd"),
    "ed": Interpreter("", "", "p", "sGlrvE"),
    "at": Interpreter("f", "", "qt", "lrdbmMvVc"),
    "batch": Interpreter("f"),
    "crontab": Interpreter("", "", "u", "lin", stops="-l --version --help"),
    "lftp": Interpreter("cef"),
    "mongo": Interpreter(longs="eval", values="up", long_values="host port username password"),
    "crystal": Interpreter(reads=False),
}
INTERPRETERS: dict[str, Interpreter] = {
    **_MAIN,
    "powershell": _MAIN["pwsh"],
    "mongosh": _MAIN["mongo"],
    "powershell.exe": _MAIN["pwsh"],
    **dict.fromkeys(names("vi nvim view gvim ex vimdiff rvim rview nvi elvis"), VIM),
    "emacsclient": LISP,
    "ipython3": PYTHON,
}
