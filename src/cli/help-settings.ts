import { SETTINGS } from "../config/schema.ts";
import type { Setting } from "../config/setting.ts";

/** Lists settings in the help text. */

const CLASSES = {
  term: "Terms of a connection",
  server: "Settings of the server (in a daemon: of the user's file, claude-agents-mcp/config.json)",
  client: "Settings of the client",
};

/** Lists settings, a line each, so that all fit on one screen. */
export function settings(isListed: (setting: Setting) => boolean = () => true): string {
  const all = SETTINGS.filter(isListed);
  const blocks = Object.entries(CLASSES).map(([of, title]) =>
    [title, ...all.filter((each) => each.of === of).map(settingLine)].join("\n"),
  );
  return blocks.join("\n");
}

function settingLine({ flag: name, placeholder, meaning, reading, fallback }: Setting): string {
  const isOn = reading === "boolean" && fallback === "true";
  const whole = reading === "boolean" ? `--${isOn ? "[no-]" : ""}${name}` : `--${name} ${placeholder}`;
  const left = whole.length < WIDTH ? whole : `--${name} <word>`;
  return `  ${left.padEnd(WIDTH)} ${summaryOf(meaning)}`;
}

/** Width of a flag with its values. Longer values are in the docs only. */
const WIDTH = 36;

/** Returns the first sentence. */
function summaryOf(meaning: string): string {
  return meaning.split(/(?<=\.) (?=[A-Z]|memory)/)[0] ?? "";
}

/** Returns the page without empty lines, because it must fit on one screen. */
export function servePage(): string {
  const about = "Serve MCP on stdin and stdout (docs/configuration.md).";
  const isGrouped = ({ key }: Setting) => Object.values(GROUPS).some((keys) => keys.includes(key));
  const listed = settings((setting) => !isGrouped(setting));
  const groups = Object.entries(GROUPS).map(([title, keys]) => {
    const flags = SETTINGS.filter(({ key }) => keys.includes(key)).map(({ flag }) => `--${flag}`);
    return `${title}: ${flags.join(", ")}\n`;
  });
  return `Usage: claude-agents-mcp [serve] [flags]. ${about}\n${listed}\n${groups.join("")}`;
}

/** Keys of settings that few servers need. Those of a group share a line of that page. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "For webhooks": ["notifyUrl", "notifySecretFile", "eventWebhooks"],
  "For several machines": ["storePasswordFile", "node", "labels", "sharedFolders", "leaseMs"],
};
