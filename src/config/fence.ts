import type { Rule } from "../domain/approvals/rule.ts";
import { choice, words } from "./setting.ts";

/** Settings of the sandbox that holds every session. */
export const fenceFields = {
  sandbox: choice(["off", "required"], "off", {
    flag: "sandbox",
    variable: "CLAUDE_CODE_MCP_SANDBOX",
    group: "Permissions",
    meaning:
      "With required every session runs in Claude Code's own sandbox (bubblewrap on Linux, Seatbelt on macOS): commands write in the session's folders only, and reach no host. The server does not start where there is none. With off it is each session's own option. See docs/security.md.",
  }),
  sandboxDomains: words("none", {
    flag: "sandbox-domains",
    variable: "CLAUDE_CODE_MCP_SANDBOX_DOMAINS",
    group: "Permissions",
    meaning:
      "With --sandbox required: hosts that commands may reach, such as api.example.com or *.example.com, beside those of WebFetch(domain:...) in --allow-rules.",
  }),
};

/** The hosts that rules let WebFetch read. */
export function hostsOf(rules: readonly Rule[]): string[] {
  return rules
    .filter(({ content, toolName }) => toolName === "WebFetch" && content?.startsWith(DOMAIN) === true)
    .map(({ content = "" }) => content.slice(DOMAIN.length));
}

const DOMAIN = "domain:";
