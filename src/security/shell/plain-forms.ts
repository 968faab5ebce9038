import type { ShellCommand, ShellWord } from "./shell-command.ts";

/** Calls of programs that can run other programs, in forms that run none. An unlisted form counts as running one. */

type Form = (args: ShellCommand) => boolean;

function isWrittenOut(args: ShellCommand): args is string[] {
  return !args.includes(undefined);
}

/** Accepts calls with every word written out and none of these options. A long option also matches if abbreviated. */
function without(short: RegExp, ...long: string[]): Form {
  return (args) => isWrittenOut(args) && !args.some((word) => short.test(word) || isAbbreviationOf(word, long));
}

function isAbbreviationOf(word: string, long: readonly string[]): boolean {
  if (!word.startsWith("--") || word === "--") return false;
  const name = word.slice(2).split("=")[0] ?? "";
  return long.some((option) => option.startsWith(name));
}

const NONE = /^(?!)/;

/** Accepts calls that begin with one of `subcommands` and continue in `form`. */
function only(subcommands: string, form: Form = () => true): Form {
  const known = new Set(subcommands.split(" "));
  return ([first, ...rest]) => (first === undefined ? false : known.has(first) && form(rest));
}

/** Accepts a file to run, with any arguments: the command line does not show what the file does. */
const isScriptCall: Form = ([first]) => first !== undefined && /^(?!-|\/dev\/|\/proc\/)[\w./-]+\.\w+$/.test(first);
const isVersionCall: Form = (args) => args.length === 1 && /^(?:-v|-V|--version|--help)$/.test(args[0] ?? "");

const PYTHON_MODULES: ReadonlySet<ShellWord> = new Set(
  "black build compileall json.tool mypy pip pytest ruff unittest venv".split(" "),
);

function isPlainPython(args: ShellCommand): boolean {
  const at = args.findIndex((word) => !/^-(?:[BIOSsuv]|OO)$/.test(word ?? ""));
  if (at === -1) return false;
  if (args[at] === "-m") return PYTHON_MODULES.has(args[at + 1]);
  return isScriptCall(args.slice(at)) || isVersionCall(args);
}

/** Options of npm without effect on the run of the script; everything after `--` is the script's. */
const NPM_OPTION =
  /^-(?:[sDfgdv]|-(?:silent|if-present|workspaces|no-audit|no-fund|save-dev|save-exact|no-save|prefer-offline|offline|json|long|production|legacy-peer-deps|force|ignore-scripts|frozen-lockfile|immutable|version|help|(?:workspace|depth|omit|include|filter)=[\w@/.*-]+))$/;

function isPlainNpm(args: ShellCommand): boolean {
  if (isVersionCall(args)) return true;
  const end = args.indexOf("--");
  const [first, ...rest] = end === -1 ? args : args.slice(0, end);
  const known = "audit ci i info install list ls outdated run run-script start t test version view why";
  if (first === undefined || !isWrittenOut(rest)) return false;
  return known.split(" ").includes(first) && rest.every((word) => !word.startsWith("-") || NPM_OPTION.test(word));
}

/** Accepts targets only: an assignment can set the shell of make, an option can name a file or text of rules. */
const isPlainMake: Form = (args) =>
  isWrittenOut(args) &&
  args.every((word) => /^(?:-j\d*|-[sknB]|--(?:silent|keep-going|dry-run)|[\w./][\w./-]*)$/.test(word));

/** Scripts of sed without a command or flag `e`, which run a program. A pattern cannot run anything. */
const SED_SCRIPT =
  /^(?:(?:\d+|\$)(?:,(?:\+?\d+|\$))?)?(?:[pdq=]|s(?:\/(?:\\.|[^\\/\n])*\/(?:\\.|[^\\/\n])*\/|\|(?:\\.|[^\\|\n])*\|(?:\\.|[^\\|\n])*\||#(?:\\.|[^\\#\n])*#(?:\\.|[^\\#\n])*#)[gpiI0-9]*)$/;

function isPlainSed(args: ShellCommand): boolean {
  if (!isWrittenOut(args)) return false;
  const isGiven = args.some((word) => /^-[nErsuz]*e$/.test(word));
  const scripts = isGiven
    ? args.filter((_, index) => /^-[nErsuz]*e$/.test(args[index - 1] ?? ""))
    : args.filter((word) => !word.startsWith("-")).slice(0, 1);
  const options = args.filter((word) => word.startsWith("-"));
  const areKnown = options.every((word) =>
    /^-(?:[nErsuz]*e?|i(?:\.\w+)?|-(?:quiet|silent|version|help|regexp-extended))$/.test(word),
  );
  return areKnown && scripts.every((script) => SED_SCRIPT.test(script));
}

function isPlainAwk(args: ShellCommand): boolean {
  const at = args.findIndex(
    (word, index) => !/^-(?:[Fv]|F.+)$/.test(word ?? "-F") && !/^-[Fv]$/.test(args[index - 1] ?? ""),
  );
  const program = args[at];
  if (at === -1 || program === undefined || program.startsWith("-")) return false;
  // awk also takes options behind its program, unless told otherwise.
  const isPlain = !/system|getline|@|\||\\|extension|printf?[^;}]*>/.test(program.replaceAll("||", " "));
  return isPlain && isWrittenOut(args) && args.slice(at + 1).every((word) => !word.startsWith("-"));
}

const GIT_KNOWN =
  "add am annotate apply blame branch cat-file check-ignore checkout cherry cherry-pick clean clone commit count-objects describe diff diff-tree fetch for-each-ref format-patch fsck gc grep init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash status switch symbolic-ref tag update-index update-ref var version whatchanged worktree write-tree";
/** Options of known subcommands that name a program, or a text or place with the name of one. */
const GIT_LONG =
  "config exec exec-path ext-diff extcmd open-files-in-pager receive-pack strategy template textconv tool upload-pack gpg-sign interactive edit".split(
    " ",
  );

/** Options with a message. Without a message git opens the editor of its configuration. */
const GIT_MESSAGE = /^--(?:no-edit|message=|file=)|^-[a-zA-Z]*F/;

/** Short forms of `GIT_LONG`, or options that open an editor. */
const GIT_SHORT: Readonly<Record<string, RegExp>> = {
  add: /^-[A-Za-z]*[eip]/,
  am: /^-[A-Za-z]*[Si]/,
  "cherry-pick": /^-[A-Za-z]*[Se]/,
  clone: /^-[a-z]*[cu]/,
  commit: /^-[A-Za-z]*[Sep]/,
  fetch: /^-[a-z]*u/,
  grep: /^-[A-Za-z]*O/,
  "ls-remote": /^-[a-z]*[cu]/,
  merge: /^-[A-Za-z]*[Sse]/,
  pull: /^-[A-Za-z]*[Sse]/,
  rebase: /^-[A-Za-z]*[ixsS]/,
  revert: /^-[A-Za-z]*[Se]/,
  tag: /^-[A-Za-z]*[sue]/,
};

/** Accepts known subcommands without options that run a program. The message of a commit may be any single word. */
function isPlainGit([subcommand, ...args]: ShellCommand): boolean {
  if (subcommand === undefined || !GIT_KNOWN.split(" ").includes(subcommand)) return false;
  const plainArgs = args.filter(
    (_, index) => !(subcommand === "commit" && /^(?:-a?m|--message)$/.test(args[index - 1] ?? "")),
  );
  if (!isWrittenOut(plainArgs)) return false;
  if (plainArgs.some((word) => isAbbreviationOf(word, GIT_LONG) || /^ext::|^fd::/.test(word) || /[\w-]+::/.test(word)))
    return false;
  const short = GIT_SHORT[subcommand];
  if (short && plainArgs.some((word) => short.test(word))) return false;
  return subcommand !== "commit" || plainArgs.some((word) => GIT_MESSAGE.test(word)) || args.length > plainArgs.length;
}

/** Accepts words without expansions and indexes: some shells evaluate numbers, and run the command in an index (`a[$(x)]`). */
const hasNoExpansion: Form = (args) => !args.some((word) => word !== undefined && /\$|`|\[./.test(word));

/** Accepts names of tasks only. */
const isTaskNames: Form = (args) => isWrittenOut(args) && args.every((word) => /^[\w.][\w.-]*$/.test(word));

const compiler = without(/^-(?:wrapper|B|fplugin|specs|Xclang|load)|^@/, "specs");

const docker = only("build images info inspect logs port ps pull rm rmi stats stop top version volume", without(NONE));

export const PLAIN_FORMS: ReadonlyMap<string, Form> = new Map<string, Form>([
  ["[", (args) => hasNoExpansion(args) && !args.some((word) => word === "-v" || word === "-R")],
  ["test", (args) => hasNoExpansion(args) && !args.some((word) => word === "-v" || word === "-R")],
  ["printf", (args) => !args[0]?.startsWith("-") && !args.some((word) => word !== undefined && /\$\(|`/.test(word))],
  ["exit", hasNoExpansion],
  ["return", hasNoExpansion],
  ["shift", hasNoExpansion],
  ["wait", without(/^-/)],
  ["read", (args) => isWrittenOut(args) && args.every((word) => /^(?:-r|[a-z]\w*)$/.test(word) && !/path/.test(word))],
  ["export", (args) => args.every((word) => word !== undefined && /^\w+$/.test(word))],
  [
    "set",
    (args) => isWrittenOut(args) && args.every((word) => /^(?:[-+][eux]*o?|pipefail|errexit|nounset)$/.test(word)),
  ],
  ["git", isPlainGit],
  ["npm", isPlainNpm],
  ["pnpm", isPlainNpm],
  ["yarn", isPlainNpm],
  ["make", isPlainMake],
  ["gradle", isTaskNames],
  ["mvn", isTaskNames],
  ["ninja", isTaskNames],
  ["just", isTaskNames],
  ["rake", isTaskNames],
  ["tox", (args) => args.length === 0],
  ["sed", isPlainSed],
  ["awk", isPlainAwk],
  ["gawk", isPlainAwk],
  ["mawk", isPlainAwk],
  ["nawk", isPlainAwk],
  ["original-awk", isPlainAwk],
  ["python", isPlainPython],
  ["pypy", isPlainPython],
  ["node", (args) => isScriptCall(args) || isVersionCall(args)],
  ["nodejs", (args) => isScriptCall(args) || isVersionCall(args)],
  ["ruby", (args) => isScriptCall(args) || isVersionCall(args)],
  ["perl", (args) => isScriptCall(args) || isVersionCall(args)],
  ["php", (args) => isScriptCall(args) || isVersionCall(args)],
  ["tsx", (args) => isScriptCall(args) || isVersionCall(args)],
  ["ts-node", (args) => isScriptCall(args) || isVersionCall(args)],
  ["pip", only("check freeze install list show uninstall", without(NONE, "config", "editable-exec"))],
  ["uv", only("add lock pip remove sync venv version", without(NONE, "config-file", "python"))],
  ["poetry", only("add check install lock remove show update version", without(NONE))],
  ["cargo", only("add bench build check clean clippy doc fmt metadata test tree update", without(/^-[ZC]/, "config"))],
  [
    "go",
    only(
      "build doc fix fmt get list mod test version vet",
      without(/^--?(?:exec|toolexec|vettool|overlay|ldflags|gcflags|C)/),
    ),
  ],
  ["docker", docker],
  ["podman", docker],
  ["kubectl", only("api-resources describe explain get logs version", without(NONE, "kubeconfig"))],
  ["gh", only("api issue pr release repo run search status workflow", without(NONE))],
  ["cmake", without(/^-[EPC]/, "workflow", "build-exec")],
  [
    "tar",
    (args) =>
      without(
        /^-[A-Za-z]*[FI]/,
        "checkpoint-action",
        "to-command",
        "use-compress-program",
        "rsh-command",
        "rmt-command",
        "info-script",
        "new-volume-script",
      )(args) && !/^[A-Za-z]*[FI]/.test(args[0] ?? ""),
  ],
  ["bsdtar", without(/^-/)],
  ["zip", without(/^-[A-Za-z0-9]*T/, "test", "unzip-command")],
  ["sort", without(NONE, "compress-program")],
  ["split", without(NONE, "filter")],
  ["rsync", without(/^-[A-Za-z]*e/, "rsh", "rsync-path")],
  ["scp", without(/^-[A-Za-z0-9]*[SoFD]/)],
  ["ssh-keygen", without(/^-[A-Za-z]*[DwP]/)],
  ["ssh-add", without(/^-/)],
  ["wget", without(/^-[A-Za-z]*e/, "execute", "use-askpass", "config")],
  ["rg", without(NONE, "pre", "hostname-bin")],
  ["fd", without(/^-[A-Za-z]*[xX]/, "exec", "exec-batch")],
  ["fdfind", without(/^-[A-Za-z]*[xX]/, "exec", "exec-batch")],
  ["ag", without(NONE, "pager")],
  ["ack", without(NONE, "pager", "ackrc")],
  ["openssl", without(/^-?(?:engine|provider|config)/)],
  ["cc", compiler],
  ["c++", compiler],
  ["cpp", compiler],
  ["gcc", compiler],
  ["g++", compiler],
  ["clang", compiler],
  ["clang++", compiler],
  ["install", without(/^-[A-Za-z]*s/, "strip", "strip-program")],
  ["ld", without(/^-+plugin|^@/)],
]);
