import { parseOwnFlags } from "./own-flags.ts";
import { digestOf, newToken } from "../http/auth/http-token.ts";

/** `claude-agents-mcp token`: creates a token for a server over HTTP and prints how to use it. The token is not stored. */
export function token(argv: string[]): number {
  const { json = false } = parseOwnFlags("token", argv, { options: { json: { type: "boolean" } } }).values;
  const made = newToken();
  const sha256 = digestOf(made).toString("hex");
  const principals = {
    NAME: { tokenSha256: sha256, scopes: ["read", "run", "approve"], allowDirs: ["/folders/of/NAME"] },
  };
  const text = json ? JSON.stringify({ token: made, sha256, principals }) : page(made, sha256, principals);
  process.stdout.write(`${text}\n`);
  return 0;
}

function page(made: string, sha256: string, principals: object): string {
  return [
    `Token:    ${made}`,
    `SHA-256:  ${sha256}`,
    "",
    "The token is for the client and is shown only once. The server needs only its SHA-256, in the file of --config,",
    "under the name of the user who gets the token:",
    "",
    JSON.stringify({ principals }, null, 2),
    "",
    "Or put the token itself into a file that only you can read, and pass that with --token-file: it then has every scope.",
  ].join("\n");
}
