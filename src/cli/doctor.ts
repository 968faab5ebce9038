import { fork } from "node:child_process";
import { refuseMisspelt } from "./own-flags.ts";
import { ConfigError } from "../config/error.ts";
import type { Finding } from "../doctor/finding.ts";
import { didYouMean } from "../domain/suggest.ts";
import { escapeControlChars } from "../security/control-chars.ts";

/** `claude-agents-mcp doctor`: finds everything in the way of sessions, with commands to fix it. */

/** Marks the process of the checks. An IPC channel alone does not, because any program may start us with one. */
const CHECKS_ONLY = "--checks-only";

/** Time limit of all checks, ms. `--fix` has none, because an installation takes as long as the network needs. */
const ALL_MS = 180_000;

/**
 * Resolves to exit code 1 if any finding is an error. Throws ConfigError. Checks run in a process of their own, because a
 * process with an open call to a disk that hangs cannot even exit.
 */
export async function doctor(argv: string[]): Promise<number> {
  const words = argv[0] === CHECKS_ONLY ? argv.slice(1) : argv;
  const rest = words.filter((word) => word !== "--json" && word !== "--fix");
  refuseWords(rest);
  if (words !== argv) {
    const code = await checkAll(words, rest);
    process.send?.({ code });
    return code;
  }
  const child = fork(process.argv[1] ?? "", ["doctor", CHECKS_ONLY, ...argv]);
  const code = await new Promise<number>((resolve) => {
    const limit = () => setTimeout(() => resolve(reportLate()), ALL_MS).unref();
    let timer = limit();
    child.on("message", (message) => {
      clearTimeout(timer);
      if (message === "checking") timer = limit();
      else if (message !== "fixing") resolve(codeIn(message));
    });
    child.once("exit", () => resolve(1));
  });
  child.kill("SIGKILL");
  if (child.connected) child.disconnect();
  child.unref();
  return code;
}

function codeIn(message: unknown): number {
  const isCode = typeof message === "object" && message !== null && "code" in message;
  return isCode && typeof message.code === "number" ? message.code : 1;
}

function reportLate(): number {
  console.error(`claude-agents-mcp: the checks did not end within ${String(ALL_MS / 1000)} s. A disk may hang.`);
  return 1;
}

async function checkAll(argv: readonly string[], rest: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  // Loaded here only, because the waiting process does not need them.
  const [{ examine }, { createMachine }, { createMasker }] = await Promise.all([
    import("../doctor/checks.ts"),
    import("../doctor/machine.ts"),
    import("../log/mask.ts"),
  ]);
  const examined = async () => examine(createMachine(rest, process.env), json ? () => undefined : progress);
  const masker = createMasker(process.env);
  const program = await programWords();
  // Names the program by the words that start it, if it is not in PATH.
  const clean = (text: string) => escapeControlChars(masker.text(text.replace(/^claude-agents-mcp(?= )/, program)));
  const before = await examined();
  const mends = argv.includes("--fix")
    ? await mendAll(before, json ? () => undefined : (text) => writeLine(clean(text)))
    : NOTHING_FIXED;
  const findings = mends === NOTHING_FIXED ? before : await examined();
  await writeOut(json ? jsonText(findings, mends, clean) : plainText(findings, mends, clean));
  return mends.failed.length > 0 || findings.some(({ level }) => level === "error") ? 1 : 0;
}

/** Returns the words to start this program in the user's shell. */
async function programWords(): Promise<string> {
  const { env, execPath, platform } = process;
  const [{ invocationOf }, { quoted }] = await Promise.all([
    import("../install/invocation.ts"),
    import("../doctor/finding.ts"),
  ]);
  const running = { platform, env, execPath, script: process.argv[1] ?? "", cwd: process.cwd(), shared: true };
  const { args, command } = await invocationOf(running, []);
  return [command, ...args].map(quoted).join(" ");
}

/** Resolves once `text` has left this process, or its reader is gone. */
async function writeOut(text: string): Promise<void> {
  process.stdout.on("error", () => undefined);
  return new Promise((resolve) => void process.stdout.write(text, () => resolve()));
}

/** Throws ConfigError for words that are not flags. Wrong flags of `serve` become findings instead. */
function refuseWords(rest: readonly string[]): void {
  const own = ["--json", "--fix"];
  refuseMisspelt("doctor", rest, own);
  const [first] = rest;
  if (first === undefined || first.startsWith("-")) return;
  const suggestion = didYouMean(`--${first}`, own);
  throw new ConfigError(
    `doctor: unexpected argument "${first}".${suggestion} It takes --json, --fix and the flags of serve.`,
  );
}

function progress(subject: string): void {
  process.stderr.write(`Checking ${subject} ...\n`);
}

function writeLine(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Outcome of `--fix`: results and failures. */
interface FixResults {
  readonly fixed: readonly string[];
  readonly failed: readonly string[];
}

const NOTHING_FIXED: FixResults = { fixed: [], failed: [] };

/** Mends findings one by one. Reports a missing login before an installation starts. */
async function mendAll(findings: readonly Finding[], onText: (text: string) => void): Promise<FixResults> {
  const [fixed, failed]: [string[], string[]] = [[], []];
  const mendable = findings.flatMap(({ mend, text }) => (mend ? [{ mend, text }] : []));
  if (mendable.length === 0) return NOTHING_FIXED;
  process.send?.("fixing");
  for (const { id, level, text } of findings) if (id === "login" && level === "error") onText(text);
  for (const { mend, text } of mendable) {
    onText(`Fixing: ${text}`);
    try {
      fixed.push(await mend());
    } catch (error) {
      failed.push(`${text} ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  process.send?.("checking");
  return { fixed, failed };
}

type Clean = (text: string) => string;

function jsonText(findings: readonly Finding[], { failed, fixed }: FixResults, clean: Clean): string {
  const shown = findings.map(({ fix, id, level, text }) => ({
    id,
    level,
    text: clean(text),
    ...(fix !== undefined && { fix: clean(fix) }),
  }));
  const mends = {
    ...(fixed.length > 0 && { fixed: fixed.map(clean) }),
    ...(failed.length > 0 && { notFixed: failed.map(clean) }),
  };
  return `${JSON.stringify({ findings: shown, ...mends })}\n`;
}

const WIDTH = Math.max(...["ok", "fixed", "failed", "warning", "error"].map((level) => level.length));

function plainText(findings: readonly Finding[], { failed, fixed }: FixResults, clean: Clean): string {
  const lines = findings.flatMap(({ fix, level, text }) => [
    `${level.padEnd(WIDTH)}  ${clean(text)}`,
    ...(fix === undefined ? [] : [`${" ".repeat(WIDTH)}  fix: ${clean(fix)}`]),
  ]);
  const done = fixed.map((text) => `${"fixed".padEnd(WIDTH)}  ${clean(text)}`);
  const undone = failed.map((text) => `${"failed".padEnd(WIDTH)}  Not fixed: ${clean(text)}`);
  return [...done, ...undone, ...lines, "", verdict(findings, failed.length), ""].join("\n");
}

function verdict(findings: readonly Finding[], failed: number): string {
  const count = (wanted: Finding["level"]) => findings.filter(({ level }) => level === wanted).length;
  const [errors, warnings] = [count("error"), count("warning")];
  if (errors + warnings + failed === 0) return "Nothing is wrong.";
  return `Errors: ${String(errors)}, warnings: ${String(warnings)}${failed === 0 ? "" : `, not fixed: ${String(failed)}`}.`;
}
