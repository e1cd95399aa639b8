"""The options by which a command that looks harmless starts a program, obeys another file, or writes one: a table."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .words import names


@attrs.frozen
class Risks:
    """One command's risky options.

    `letters`: short ones; `values`: harmless short ones that take a value (what follows in the word is no option).
    `longs`: long ones, also shortened; `fine`: names that only look like a shortened one. `words`: names after any
    number of dashes (`find -delete`, `go -exec`), lower case. `operands`: whole arguments. `starts`: their beginnings.
    `only`: the option is risky only with a value like this.
    """

    letters: str = ""
    values: str = ""
    longs: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    words: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    fine: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    operands: frozenset[str] = attrs.field(default=frozenset[str](), converter=names)
    starts: tuple[str, ...] = ()
    only: Mapping[str, str] = attrs.Factory(dict[str, str])
    shortened: bool = True


OUTPUTS = frozenset({"o", "O", "output", "output-document", "output-file", "dump-header", "D", "out", "log-file"})

# What such a name means is the same wherever it occurs.
ANYWHERE = Risks(
    longs="exec exec-batch execute pager pager-command to-command use-compress-program compress-program rsh rsync-path"
    " in-place inplace preprocessor eval ext-diff editor checkpoint-action upload-pack receive-pack exec-path"
    " unzip-command use-askpass output output-file output-document outfile load-extension post-command"
    " pre-command on-change",
    shortened=False,
)

_SSH = {
    "o": r"\W*(?:proxycommand|localcommand|permitlocalcommand|knownhostscommand|pkcs11provider|securitykeyprovider"
    r"|include|match|xauthlocation|userknownhostsfile|globalknownhostsfile|proxyusefdpass|controlpath|[$`])"
}
_NODE_PACKAGES = Risks(
    "C",
    "",
    "script-shell node-options prefix userconfig globalconfig git shell editor viewer browser call init-module"
    " onload-script before cwd dir cafile registry",
    fine="offline",
    shortened=False,
)
_GO = Risks(
    "C",
    "",
    words="exec toolexec vettool overlay modfile modcacherw",
    starts=("-ldflags=-ext", "-ldflags=-link", "-gccgoflags", "--gccgoflags"),
)

COMMANDS: dict[str, Risks] = {
    "find": Risks(words="delete fprint fprint0 fprintf fls files0-from"),
    "sort": Risks("o", "kStT", "output compress-program"),
    "shuf": Risks("o", "neir", "output random-source"),
    "base64": Risks("o", "wibDd", "output"),
    "file": Risks("C", "mfFPe", "compile"),
    "rg": Risks("z", "efgtTABCmMjrdE", "pre hostname-bin search-zip", fine="pre-glob"),
    "ag": Risks("", "ABCGmp", "pager"),
    "ack": Risks("", "ABCm", "pager ackrc files-from output", fine="files"),
    "bat": Risks("", "lrmH", "pager diff-cmd map-syntax"),
    "delta": Risks("", "", "pager features config"),
    "fd": Risks("xX", "dEetSocj", "exec exec-batch"),
    "fdfind": Risks("xX", "dEetSocj", "exec exec-batch"),
    "tar": Risks(
        "IFTP",
        "fbCgKLNVXH",
        "use-compress-program to-command checkpoint-action rsh-command rmt-command info-script"
        " new-volume-script remove-files index-file files-from delete absolute-names unlink-first"
        " recursive-unlink",
    ),
    "curl": Risks(
        "oOJKcDTdF",
        "AbeEHmQrtuUwxXyYzCP",
        "upload-file data data-binary data-ascii data-urlencode form output remote-name remote-name-all"
        " remote-header-name output-dir config cookie-jar dump-header trace trace-ascii stderr libcurl hsts"
        " alt-svc etag-save engine create-dirs netrc-file",
        fine="trace-time head data-raw form-string form-escape",
        only={
            "d": r".*@",
            "F": r".*=[@<]",
            "data": "@",
            "data-binary": "@",
            "data-ascii": "@",
            "data-urlencode": r"[^=]*@",
            "form": r".*=[@<]",
        },
    ),
    "wget": Risks(
        "OoaPexi",
        "AtTQwUlDRIX",
        "output-document output-file append-output directory-prefix execute use-askpass config post-file"
        " body-file save-cookies hsts-file warc-file rejected-log input-file force-directories",
    ),
    "man": Risks("PHCXpTZ", "MLesSrmR", "pager html config-file gxditview preprocessor troff-device"),
    "less": Risks("oOkT", "pPbhjxyz", "log-file LOG-FILE lesskey-file lesskey-src lesskey-content tag-file"),
    "zless": Risks("oOkT", "pPbhjxyz", "log-file LOG-FILE lesskey-file"),
    "ssh": Risks("oFIES", "bceilmpBQWDJLRw", only=_SSH),
    "scp": Risks("oFSDi", "cJlPX", only=_SSH),
    "sftp": Risks("oFSDbi", "BcJlPRX", only=_SSH),
    "rsync": Risks(
        "eMT",
        "fB",
        "rsh rsync-path daemon config remove-source-files log-file password-file write-batch only-write-batch"
        " read-batch backup-dir temp-dir remote-option delete delete-before delete-after delete-during"
        " delete-delay delete-excluded files-from early-input partial-dir",
        fine="dry-run",
    ),
    "go": _GO,
    "cargo": Risks("Z", "pjF", "config manifest-path target-dir fix artifact-dir out-dir", starts=("+",)),
    "npm": _NODE_PACKAGES,
    "pnpm": _NODE_PACKAGES,
    "yarn": _NODE_PACKAGES,
    "pip": Risks(
        "t", "rci", "target prefix root index-url extra-index-url find-links trusted-host log python proxy cert"
    ),
    "pip3": Risks(
        "t", "rci", "target prefix root index-url extra-index-url find-links trusted-host log python proxy cert"
    ),
    "make": Risks("fCIE", "jlOoW", "file makefile directory include-dir eval"),
    "gmake": Risks("fCIE", "jlOoW", "file makefile directory include-dir eval"),
    "ninja": Risks("Cft", "jkld"),
    "cmake": Risks("PEDCT", "SBG", only={"D": r".*(?:launcher|compiler|linker|program|toolchain|command)"}),
    "gradle": Risks("IbcDp", "x", "init-script build-file settings-file project-dir include-build"),
    "mvn": Risks("fstD", "plPT", "file settings toolchains global-settings"),
    "bazel": Risks("", "", "run_under bazelrc host_jvm_args workspace_status_command"),
    "date": Risks("s", "dfrI", "set"),
    "hostname": Risks("Fb", "", "file boot"),
    "tree": Risks("o", "LPIHT", "output"),
    "split": Risks("", "abClntSe", "filter"),
    "iconv": Risks("o", "ft", "output"),
    "xmllint": Risks("o", "", "output shell", words="output shell", fine="format"),
    "xsltproc": Risks("o", "", "output", words="output writesubtree"),
    "yq": Risks("is", "pPIo", "inplace in-place split-exp"),
    "xq": Risks("i", "", "in-place"),
    "zip": Risks("TmO", "xiPntb", "unzip-command move output-file", words="tt"),
    "7z": Risks(starts=("-sdel", "-sfx", "-o", "-w")),
    "gpg": Risks("o", "ur", "output exec-path photo-viewer agent-program keyserver-options homedir options batch-file"),
    "openssl": Risks(words="out engine config provider-path writerand keyout passin"),
    "tcpdump": Risks("zwWF", "ircsBCGT"),
    "tshark": Risks("wXM", "ifcYTe"),
    "nmap": Risks(
        "", "pT", "script resume datadir servicedb versiondb", starts=("-oN", "-oX", "-oG", "-oA", "-oS", "-iL")
    ),
    "nc": Risks("ec", "pswqX", "exec sh-exec lua-exec"),
    "ncat": Risks("ecom", "psw", "exec sh-exec lua-exec output hex-dump"),
    "socat": Risks("l", "bTt"),
    "pytest": Risks(
        "pco",
        "kmnrW",
        "rootdir basetemp pdbcls junitxml junit-xml log-file config-file override-ini confcutdir result-log debug",
        only={"p": r"(?!no:)"},
        fine="pdb",
        shortened=False,
    ),
    "mypy": Risks("", "pmc", "python-executable config-file junit-xml install-types custom-typeshed-dir"),
    "ruff": Risks("", "", "fix fix-only unsafe-fixes config output-file add-noqa", fine="fixable"),
    "eslint": Risks(
        "ocf",
        "",
        "fix fix-type config output-file rulesdir resolve-plugins-relative-to plugin parser init",
        fine="fix-dry-run plugin-path",
        only={"f": r"[./]"},
        shortened=False,
    ),
    "prettier": Risks("w", "", "write config plugin plugin-search-dir", shortened=False),
    "rubocop": Risks(
        "aArco", "fl", "auto-correct autocorrect autocorrect-all auto-correct-all require config out plugin"
    ),
    "gofmt": Risks("wr", "", words="w r cpuprofile"),
    "shfmt": Risks("w", "ilp", "write"),
    "clang-format": Risks("i", "", words="i style"),
    "clang-tidy": Risks("", "p", "fix fix-errors fix-notes export-fixes load", words="fix load export-fixes"),
    "gcc": Risks("B", "", "wrapper", words="wrapper specs", starts=("-fplugin", "-wrapper", "-specs", "-B")),
    "g++": Risks("B", "", "wrapper", words="wrapper specs", starts=("-fplugin", "-wrapper", "-specs", "-B")),
    "cc": Risks("B", "", "wrapper", words="wrapper specs", starts=("-fplugin", "-wrapper", "-specs", "-B")),
    "clang": Risks("B", "", "", words="load", starts=("-fplugin", "-fpass-plugin", "-B")),
    "pdflatex": Risks(words="shell-escape enable-write18 output-directory output-format cnf-line aux-directory"),
    "xelatex": Risks(words="shell-escape enable-write18 output-directory cnf-line"),
    "lualatex": Risks(words="shell-escape enable-write18 output-directory lua"),
    "latexmk": Risks("er", "", words="e r latex pdflatex shell-escape usepretex pretex"),
    "java": Risks(
        starts=(
            "-javaagent",
            "-agentpath",
            "-agentlib",
            "-XX:OnError",
            "-XX:OnOutOfMemoryError",
            "-Xbootclasspath",
            "@",
        )
    ),
    "journalctl": Risks(
        "", "upntoS", "rotate flush sync relinquish-var vacuum-size vacuum-time vacuum-files cursor-file setup-keys"
    ),
    "dmesg": Risks("CcDEn", "", "clear read-clear console-off console-on console-level"),
    "sysctl": Risks("wp", "", "write load system"),
    "ss": Risks("KD", "fAF", "kill diag"),
    "svn": Risks("", "rm", "config-dir config-option editor-cmd diff-cmd diff3-cmd"),
    "hg": Risks("R", "rl", "config cwd repository debugger ssh remotecmd tool"),
    "kubectl": Risks("", "noflc", "kubeconfig as token server", shortened=False),
    "helm": Risks("", "nf", "post-renderer kubeconfig", shortened=False),
    "terraform": Risks(words="chdir out state-out backup plugin-dir auto-approve backend-config"),
    "dd": Risks(starts=("of=",)),
    "set": Risks("ka", "", "", operands="keyword allexport posix"),
    "shopt": Risks("sup"),
    "history": Risks("acdrwsn"),
    "ldd": Risks("", "", starts=("/", "./", "../")),
    "strings": Risks("T", "nte"),
}

SUBCOMMANDS: dict[str, dict[str, Risks]] = {
    "go": {
        "env": Risks(words="w u"),
        "tool": Risks(operands="pprof", starts=("-o",)),
    },
}
