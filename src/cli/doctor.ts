import { fork } from "node:child_process";
import { refuseMisspelt } from "./own-flags.ts";
import { ConfigError } from "../config/error.ts";
import type { Finding } from "../doctor/finding.ts";
import { escapeControlChars } from "../security/control-chars.ts";

/** `claude-agents-mcp doctor`: what would keep a session from working, and the commands that put it right. */

/** Marks the process of the checks: an IPC channel alone does not, since any program may start us with one. */
const CHECKS_ONLY = "--checks-only";

/** Of all checks, ms. */
const ALL_MS = 180_000;

/**
 * Resolves to the exit code: 1 when there is an error among the findings. Throws ConfigError. The checks run in a process of
 * their own: where a disk hangs, a process with an open call to it cannot even exit.
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
    child.once("message", (message) => resolve(codeIn(message)));
    child.once("exit", () => resolve(1));
    setTimeout(() => resolve(late()), ALL_MS).unref();
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

function late(): number {
  console.error(`claude-agents-mcp: the checks did not end within ${String(ALL_MS / 1000)} s. A disk may hang.`);
  return 1;
}

async function checkAll(argv: readonly string[], rest: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  // Loaded here alone: the process that waits needs none of it.
  const [{ examine }, { thisMachine }, { createMasker }] = await Promise.all([
    import("../doctor/checks.ts"),
    import("../doctor/machine.ts"),
    import("../log/mask.ts"),
  ]);
  const examined = async () => examine(thisMachine(rest, process.env), json ? () => undefined : progress);
  const before = await examined();
  const fixed = argv.includes("--fix") ? await mendAll(before) : [];
  const findings = fixed.length > 0 ? await examined() : before;
  const masker = createMasker(process.env);
  const clean = (text: string) => escapeControlChars(masker.text(text));
  await written(json ? jsonText(findings, fixed, clean) : plainText(findings, fixed, clean));
  return findings.some(({ level }) => level === "error") ? 1 : 0;
}

/** Resolves when the text has left this process, or its reader is gone. */
async function written(text: string): Promise<void> {
  process.stdout.on("error", () => undefined);
  return new Promise((resolve) => void process.stdout.write(text, () => resolve()));
}

/** All other flags are those of serve, and what is wrong with one is a finding. */
function refuseWords(rest: readonly string[]): void {
  refuseMisspelt("doctor", rest, ["--json", "--fix"]);
  const [first] = rest;
  if (first === undefined || first.startsWith("-")) return;
  throw new ConfigError(`doctor: unexpected argument "${first}". It takes --json, --fix and the flags of serve.`);
}

function progress(subject: string): void {
  process.stderr.write(`Checking ${subject} ...\n`);
}

/** One after the other. Resolves to what was done, and what could not be. */
async function mendAll(findings: readonly Finding[]): Promise<string[]> {
  const done: string[] = [];
  for (const { mend, text } of findings) {
    if (!mend) continue;
    done.push(await mend().catch((error: unknown) => `Not mended: ${text} (${String(error)})`));
  }
  return done;
}

type Clean = (text: string) => string;

function jsonText(findings: readonly Finding[], fixed: readonly string[], clean: Clean): string {
  const shown = findings.map(({ fix, id, level, text }) => ({
    id,
    level,
    text: clean(text),
    ...(fix !== undefined && { fix: clean(fix) }),
  }));
  return `${JSON.stringify({ findings: shown, ...(fixed.length > 0 && { fixed: fixed.map(clean) }) })}\n`;
}

const WIDTH = Math.max(...["ok", "warning", "error"].map((level) => level.length));

function plainText(findings: readonly Finding[], fixed: readonly string[], clean: Clean): string {
  const lines = findings.flatMap(({ fix, level, text }) => [
    `${level.padEnd(WIDTH)}  ${clean(text)}`,
    ...(fix === undefined ? [] : [`${" ".repeat(WIDTH)}  fix: ${clean(fix)}`]),
  ]);
  const done = fixed.map((text) => `${"fixed".padEnd(WIDTH)}  ${clean(text)}`);
  const count = (wanted: Finding["level"]) => findings.filter(({ level }) => level === wanted).length;
  const [errors, warnings] = [count("error"), count("warning")];
  const verdict =
    errors + warnings === 0 ? "Nothing is wrong." : `Errors: ${String(errors)}, warnings: ${String(warnings)}.`;
  return [...done, ...lines, "", verdict, ""].join("\n");
}
