// Types the commands of README in a bare Debian: a fresh root with Node, npm and nothing else of this machine. Prints the time
// to the first result of an installation and of a clone; fails if one takes longer than two minutes. Needs root and Linux.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { readArguments } from "./arguments.mjs";
import { install, succeeds } from "./debian.mjs";
import { packInto } from "./packed.mjs";

const LIMIT_MS = 120_000;
/** Line of the demo in which Claude Code has answered. */
const RESULT = /^ *[\d.]+ s {2}claude {2}result: /;
const DONE = /^All checks passed/;
/** Variables that are passed on to the fresh root. */
const OF_THE_NETWORK = /^(?:https?_proxy|no_proxy|npm_config_registry|node_extra_ca_certs)$/i;

const clone = join(import.meta.dirname, "..");
const USAGE = `Usage: node scripts/try-readme.mjs [--package FILE] [--archive FILE] [--suite NAME]

--package FILE  package file (default: packed from this clone)
--archive FILE  tar of the root, created if missing (takes minutes); default: created each time
--suite NAME    release of Debian, with its own Node: trixie (default) or later`;

const { values } = readArguments(USAGE, {
  options: { archive: { type: "string" }, package: { type: "string" }, suite: { type: "string", default: "trixie" } },
});
if (process.getuid?.() !== 0)
  throw new Error("This needs root, for the folder that becomes the root of a bare Debian.");

const folder = mkdtempSync(join(tmpdir(), "ccm-bare-"));
try {
  const archive = values.archive === undefined ? join(folder, "root.tar") : resolve(values.archive);
  if (!existsSync(archive)) makeArchive(archive, values.suite);
  const times = [];
  for (const [name, way] of Object.entries({
    install: toInstall(values.package === undefined ? packInto(folder) : resolve(values.package)),
    clone: toClone(),
  })) {
    console.log(`\n# For those who ${name}`);
    times.push({ name, ...(await time(freshRoot(archive, name), way)) });
  }
  console.log("");
  for (const { firstMs, name, wholeMs } of times) {
    console.log(`${name}: first result after ${seconds(firstMs)}, demo at its end after ${seconds(wholeMs)}`);
  }
  if (times.some(({ firstMs }) => firstMs > LIMIT_MS)) {
    console.error(`More than ${seconds(LIMIT_MS)}.`);
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

function makeArchive(archive, suite) {
  if (!succeeds("mmdebstrap", ["--version"])) {
    install({
      packages: ["debian-archive-keyring", "mmdebstrap"],
      size: "1 MB",
      what: "mmdebstrap",
      whatToDo: "Install mmdebstrap.",
    });
  }
  const began = Date.now();
  const words = ["--quiet", "--variant=minbase", "--include=ca-certificates,nodejs,npm", suite, archive];
  execFileSync("mmdebstrap", words, { stdio: ["ignore", "ignore", "inherit"] });
  console.log(`Made a bare Debian (${suite}) in ${seconds(Date.now() - began)}`);
}

/** Returns the first command of a section of README. */
function commandIn(heading) {
  const [, section = ""] = readFileSync(join(clone, "README.md"), "utf8").split(`\n## ${heading}\n`);
  const block = /^```sh\n([^]*?)^```/m.exec(section.split("\n## ")[0])?.[1];
  if (block === undefined) throw new Error(`README.md has no command in "${heading}"`);
  return block.trim();
}

/** Returns `command` after checking that a sentence of README quotes the whole command, so that both change together. */
function quoted(command) {
  if (!readFileSync(join(clone, "README.md"), "utf8").includes(`\`${command}\``)) {
    throw new Error(`README.md does not name the command ${command}`);
  }
  return command;
}

/** Installs the unpublished package from its file, then uses the command of README without npx. */
function toInstall(file) {
  const write = quoted("npx -y claude-agents-mcp install claude-code").replace("npx -y ", "");
  return {
    // `--yes`, because there is no terminal to confirm on.
    commands: [`npm install -g ./${basename(file)}`, `${write} --yes`, quoted("claude-agents-mcp demo")],
    prepare: (root) => copyFileSync(file, join(root, "root", basename(file))),
    check: (root) => readFileSync(join(root, "root/.claude.json"), "utf8").includes('"claude-agents-mcp"'),
  };
}

/** Clones the committed files. */
function toClone() {
  return {
    commands: ["cd claude-agents-mcp", commandIn("Try it")],
    prepare: (root) => {
      const into = join(root, "root/claude-agents-mcp");
      mkdirSync(into);
      const tree = execFileSync("git", ["archive", "HEAD"], { cwd: clone, maxBuffer: 1e9 });
      execFileSync("tar", ["--extract", "--directory", into], { input: tree });
    },
    check: (root) => existsSync(join(root, "root/claude-agents-mcp/dist/cli/main.js")),
  };
}

/**
 * Returns a fresh root. Copies only network settings of this machine: names, certificates of proxies, and variables that name
 * the certificates.
 */
function freshRoot(archive, name) {
  const root = join(folder, name);
  mkdirSync(root);
  execFileSync("tar", ["--extract", "--file", archive, "--directory", root, "--exclude=./dev/*"]);
  const files = ["/etc/resolv.conf", "/etc/hosts", process.env.NODE_EXTRA_CA_CERTS ?? ""];
  for (const file of files.filter((each) => each !== "" && existsSync(each))) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    copyFileSync(file, join(root, file));
  }
  return root;
}

/** Types the commands. Resolves to the times to the first result and to the end of the demo, ms. */
async function time(root, { check, commands, prepare }) {
  prepare(root);
  const network = Object.entries(process.env).filter(([name]) => OF_THE_NETWORK.test(name));
  const env = {
    HOME: "/root",
    LANG: "C.UTF-8",
    npm_config_progress: "false",
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ...Object.fromEntries(network),
  };
  // Own namespaces end all processes with the shell, and hide the mounts from this machine.
  const setUp = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" /bin/sh -exc "cd; $1"';
  const words = ["--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", setUp, root, commands.join("\n")];
  const began = Date.now();
  const shell = spawn("unshare", words, { env, stdio: ["ignore", "pipe", "inherit"] });
  let [firstMs, wholeMs] = [0, 0];
  for await (const line of createInterface({ input: shell.stdout })) {
    console.log(line);
    if (RESULT.test(line)) firstMs ||= Date.now() - began;
    if (DONE.test(line)) wholeMs = Date.now() - began;
  }
  const code = shell.exitCode ?? (await once(shell, "exit"))[0];
  if (code !== 0 || wholeMs === 0 || !check(root)) throw new Error(`The commands failed (exit code ${code}).`);
  return { firstMs, wholeMs };
}
