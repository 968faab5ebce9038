import type { Identity } from "../domain/session.ts";
import { configFolder } from "./environment.ts";

/** Whose configuration a Claude Code with this environment would use, and who would pay for it. */
export function identify(environment: Readonly<Record<string, string>>): Identity {
  return { configFolder: configFolder(environment), paidBy: payer(environment) };
}

/** In the order in which Claude Code itself looks. Names of ways to pay, never anything of the credential. */
function payer(environment: Readonly<Record<string, string>>): string {
  const isSet = (name: string) => (environment[name] ?? "") !== "";
  if (isSet("CLAUDE_CODE_USE_BEDROCK")) return "Amazon Bedrock";
  if (isSet("CLAUDE_CODE_USE_VERTEX")) return "Google Vertex";
  if (isSet("CLAUDE_CODE_USE_FOUNDRY")) return "Microsoft Foundry";
  if (isSet("ANTHROPIC_AUTH_TOKEN")) return "ANTHROPIC_AUTH_TOKEN";
  if (isSet("ANTHROPIC_API_KEY")) return "ANTHROPIC_API_KEY";
  if (isSet("CLAUDE_CODE_OAUTH_TOKEN")) return "CLAUDE_CODE_OAUTH_TOKEN";
  return "the Claude login of the configuration folder";
}
