import type { MadeToken } from "./authenticator.ts";

/** What the operator is told when the server has made its token: where it is, and what to give to clients. */

interface Telling {
  /** The URL of /mcp, as clients reach it. */
  readonly url: string;
  /** False where the text is kept, as by systemd: the token is in its file then, and nowhere else. */
  readonly showToken: boolean;
}

/** Whole lines, the last with its end. For a person to read, so for stderr itself and not for the logger. */
export function firstStartText({ file, token }: MadeToken, { showToken, url }: Telling): string {
  const shown = showToken ? token : "<token>";
  const authorization = `Bearer ${shown}`;
  const client = { type: "http", url, headers: { Authorization: authorization } };
  const where = showToken ? "It is shown only once;" : "Replace <token> with it;";
  return [
    `claude-agents-mcp created a token that each client must send. It is in ${file}, readable only by you.`,
    `${where} anyone who has it can do everything that this server offers.`,
    "",
    "Claude Code:",
    "",
    `  claude mcp add --transport http claude-agents-mcp ${url} --header "Authorization: ${authorization}"`,
    "",
    "Clients with a JSON configuration file:",
    "",
    ...JSON.stringify({ mcpServers: { "claude-agents-mcp": client } }, null, 2)
      .split("\n")
      .map((line) => `  ${line}`),
    "",
    "Tokens for others, with fewer scopes: claude-agents-mcp token. More: docs/http.md.",
    "",
  ].join("\n");
}
