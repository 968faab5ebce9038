import { invalidArgument } from "../../domain/error.ts";

/** Text that JSON can carry and that what comes after us cannot: refused wherever it comes in. */

type Path = readonly PropertyKey[];

/** Deeper than any real argument: beyond it, whatever walks through the value may run out of stack. */
const MAX_DEPTH = 100;

/** Refuses half characters, `__proto__` keys, endless nesting. */
export function refuseUnsafeText(value: unknown, path: Path = []): void {
  if (typeof value === "string") return refuseHalfCharacter(value, path);
  if (typeof value !== "object" || value === null) return;
  if (path.length > MAX_DEPTH)
    throw invalidArgument(pathName(path.slice(0, 2)), "is nested too deeply. Send it flatter.");
  for (const [key, each] of Object.entries(value)) {
    if (key === "__proto__") throw invalidArgument(pathName([...path, key]), "is not allowed as a name. Rename it.");
    refuseHalfCharacter(key, [...path, "a name in it"]);
    refuseUnsafeText(each, [...path, key]);
  }
}

/** NUL ends a string in the arguments, the environment and the paths of a process. */
export function refuseNul(value: unknown, path: Path = []): void {
  if (typeof value === "string" && value.includes("\0")) {
    throw invalidArgument(pathName(path), "must not contain a NUL character. Remove it.");
  }
  if (typeof value !== "object" || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    refuseNul(key, [...path, "a name in it"]);
    refuseNul(each, [...path, key]);
  }
}

function refuseHalfCharacter(text: string, path: Path): void {
  const found = /\p{Cs}/u.exec(text);
  if (!found) return;
  const problem = `has a lone surrogate at position ${String(found.index)}.`;
  throw invalidArgument(pathName(path), `${problem} Remove it, or replace it with U+FFFD.`);
}

/** Characters. */
const MAX_NAME = 120;

/** The field as an error names it: in one line, whatever its name holds. */
export function pathName(path: Path): string {
  if (path.length === 0) return "arguments";
  const whole = path.map(String).join(".");
  const line = whole
    .slice(0, MAX_NAME * 4)
    .replaceAll(/[\s\p{Cc}\p{Cs}]+/gu, " ")
    .trim();
  const characters = Array.from(line);
  const isWhole = characters.length <= MAX_NAME && whole.length <= MAX_NAME * 4;
  return isWhole ? line : `${characters.slice(0, MAX_NAME - 1).join("")}…`;
}
