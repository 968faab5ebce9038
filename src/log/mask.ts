import type { JsonObject } from "../domain/json.ts";

/**
 * Takes secrets out of what leaves the process as text: the values of environment variables that are named like a
 * secret, and whatever looks like a credential by itself.
 */
export interface Masker {
  text(text: string): string;
  /** A copy, masked in every string at any depth. Names of fields are left as they are. */
  fields(fields: JsonObject): JsonObject;
}

const MASKED = "[masked]";

const SECRET_NAME = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|AUTH(?!OR_)/i;

/** A shorter value would be found, and masked, in ordinary words. */
const LEAST_LENGTH = 8;

const CREDENTIALS = new RegExp(
  [
    // A private key that was cut off has no end: all that follows is masked.
    /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/,
    /sk-ant-[\w-]{4,}/,
    /(?<=\bBearer\s+)[\w.~+/-]{4,}=*/,
    /\bgh[pousr]_\w{20,}/,
    /\bAKIA[A-Z0-9]{16}\b/,
    /\bxox[a-z]-[\w-]{10,}/,
    // User and password in a URL, for instance of a proxy.
    /(?<=:\/\/)[^\s/@:"]+:[^\s/@"]+(?=@)/,
  ]
    .map((pattern) => pattern.source)
    .join("|"),
  "gi",
);

/** `env` is read once, here. */
export function createMasker(env: Readonly<Record<string, string | undefined>>): Masker {
  const secrets = secretValues(env);
  const text = (value: string): string => {
    const known = secrets === undefined ? value : value.replaceAll(secrets, MASKED);
    return known.replaceAll(CREDENTIALS, MASKED);
  };
  return { text, fields: (fields) => maskEntries(fields, text, []) };
}

function secretValues(env: Readonly<Record<string, string | undefined>>): RegExp | undefined {
  const values = Object.entries(env).flatMap(([name, value]) => {
    const secret = value?.trim() ?? "";
    if (!SECRET_NAME.test(name) || secret.length < LEAST_LENGTH) return [];
    // As it is, and as it stands inside a JSON text.
    return [secret, JSON.stringify(secret).slice(1, -1)];
  });
  if (values.length === 0) return undefined;
  // The longest first: one secret may begin with another.
  const sorted = [...new Set(values)].toSorted((a, b) => b.length - a.length);
  return new RegExp(sorted.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
}

type MaskText = (text: string) => string;

/** `above` are the objects this one stands in: a value that holds itself is cut there. */
function maskEntries(value: object, text: MaskText, above: readonly object[]): JsonObject {
  const inside = [...above, value];
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, maskValue(each, text, inside)]));
}

function maskValue(value: unknown, text: MaskText, above: readonly object[]): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (above.includes(value)) return "[circular]";
  if (Array.isArray(value)) return value.map((each) => maskValue(each, text, [...above, value]));
  if (value instanceof Error) {
    // What an error says of itself is not enumerable; fields of its class are.
    const { name, message, stack, cause } = value;
    const fields = { ...Object.fromEntries(Object.entries(value)), name, message, stack, cause };
    return maskEntries(fields, text, [...above, value]);
  }
  return maskEntries(value, text, above);
}
