import { randomBytes } from "node:crypto";
import { PRODUCT } from "../../domain/names.ts";
import { connectionProblem, HostProblem, errorLine, noiseProblem, runSsh } from "./run-ssh.ts";
import { sshArgs } from "./host.ts";

/** Finds this program on another machine, and the Node that runs it there. */

/** This program there. */
export interface FoundThere {
  /** Absolute command; begins with `env PATH=...` if the login shell of a terminal finds more programs. */
  readonly words: readonly string[];
  readonly version: string;
  /** System and processor, as `uname` writes them. */
  readonly platform: string;
  /** Undefined if the program starts a Node of its own. */
  readonly node: string | undefined;
}

/**
 * Shell script. A command over SSH has neither the `PATH` of a terminal nor what nvm and the like add, so a login shell is
 * asked for its `PATH`, and folders of package managers are searched. `timeout` ends a login shell that waits for a person. Each
 * line of the answer begins with `$1`, so that other output is recognized.
 */
const SCRIPT = String.raw`
mark=$1 name=${PRODUCT}
say() { printf '%s %s %s\n' "$mark" "$1" "$2"; }
say platform "$(uname -s) $(uname -m)"
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout 10'
login=$($limit "$SHELL" -l -i -c "echo; echo $mark; printenv PATH" </dev/null 2>/dev/null | sed -n "/^$mark\$/{n;p;}")
say short "$PATH"
say login "$login"
list() {
  IFS=:
  for folder in $login:$PATH; do case $folder in /*) printf '%s\n' "$folder" ;; esac; done
  unset IFS
  printf '%s\n' "$HOME/.local/bin" "$HOME/.npm-global/bin" "$HOME/.volta/bin" "$HOME/n/bin" "$HOME"/.nvm/versions/node/*/bin \
    "$HOME"/.local/share/fnm/node-versions/*/installation/bin "$HOME/.local/share/mise/shims" "$HOME/.asdf/shims" \
    /usr/local/bin /opt/homebrew/bin
}
attempt() {
  if said=$("$@" --version 2>/dev/null </dev/null); then
    for word; do say word "$word"; done
    [ $# = 1 ] || say node "$("$1" --version </dev/null)"
    say version "$said"
    exit
  fi
  said=$("$@" --version 2>&1 </dev/null)
  for line in $said; do say failed "$line"; done
}
folders=$(list)
set -f
IFS='
'
for folder in $folders; do
  program=$folder/$name
  [ -f "$program" ] && [ -x "$program" ] || continue
  say seen "$program"
  IFS= read -r first <"$program"
  case $first in
  '#!'*node*) for other in $folder $folders; do [ -x "$other/node" ] && attempt "$other/node" "$program"; done ;;
  *) attempt "$program" ;;
  esac
done
`;

/** Time limit, ms. */
const SEARCH_MS = 45_000;

/** Throws HostProblem. */
export async function findThere(ssh: string, target: string): Promise<FoundThere> {
  const mark = `found-${randomBytes(8).toString("hex")}`;
  const output = await runSsh(ssh, sshArgs(target, ["sh", "-s", mark]), { input: SCRIPT, ms: SEARCH_MS });
  const problem = connectionProblem(target, output);
  if (problem !== undefined) throw new HostProblem(problem);
  const lines = output.stdout.split("\n");
  const ours = lines.filter((line) => line.startsWith(`${mark} `));
  if (ours.length === 0) {
    const why = errorLine(output.stderr + output.stdout);
    throw new HostProblem(`the login shell of ${target} did not run sh: ${why}. Hosts need a POSIX shell.`);
  }
  const noise = lines.filter((line) => !line.startsWith(`${mark} `)).join("\n");
  if (noise.trim() !== "") throw new HostProblem(noiseProblem(target, noise));
  return readAnswer(target, (key) => {
    const start = `${mark} ${key} `;
    return ours.flatMap((line) => (line.startsWith(start) ? [line.slice(start.length)] : []));
  });
}

function readAnswer(target: string, all: (key: string) => readonly string[]): FoundThere {
  const [version] = all("version");
  if (version === undefined) throw new HostProblem(missing(target, all("seen"), all("failed")));
  const program = all("word");
  // `ssh` reads flags behind the destination, too, and a flag may run a command here.
  if (program.length === 0 || !program.every((word) => word.startsWith("/"))) {
    throw new HostProblem(`${target} named no absolute path of ${PRODUCT}.`);
  }
  const [short = "", login = ""] = [all("short")[0], all("login")[0]];
  const isLonger = login.split(":").some((folder) => folder.startsWith("/") && !short.split(":").includes(folder));
  return {
    words: [...(isLonger ? ["env", `PATH=${login}`] : []), ...program],
    version,
    platform: all("platform")[0] ?? "",
    node: all("node")[0],
  };
}

function missing(target: string, seen: readonly string[], failed: readonly string[]): string {
  const [program] = seen;
  if (program === undefined) {
    return `${PRODUCT} is not installed on ${target}: neither PATH nor the folders of npm, nvm, fnm, Volta, mise, asdf and Homebrew have it. Run there: npm install -g ${PRODUCT} (in a clone: npm link).`;
  }
  const old = failed.find((line) => line.includes("needs Node"));
  if (old !== undefined) {
    return `${program} on ${target} finds no Node that is new enough: ${errorLine(old)} Install a newer Node there.`;
  }
  const said = failed.length === 0 ? "there is no node" : errorLine(failed.join("\n"));
  return `${program} on ${target} does not start: ${said}. Run there: npm install -g ${PRODUCT}.`;
}
