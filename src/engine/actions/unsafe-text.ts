import { invalidArgument } from "../../domain/error.ts";

/** Refuses text that JSON can carry but later consumers cannot, at every entry. */

type Path = readonly PropertyKey[];

/** Maximum nesting, deeper than any real argument. Code that walks through a deeper value may run out of stack. */
const MAX_DEPTH = 100;

/** Refuses lone surrogates, `__proto__` keys and nesting beyond `MAX_DEPTH`. */
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

/** Refuses NUL, which ends a string in the arguments, the environment and the paths of a process. */
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

/** Maximum length of a path in `pathName`, characters. */
const MAX_NAME = 120;

/** Returns the field's name for an error: in one line, whatever the name holds. */
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
