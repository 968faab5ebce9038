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
  const isOnOneLine = ({ key }: Setting) => FOR_MACHINES.includes(key);
  const names = SETTINGS.filter(isOnOneLine).map(({ flag }) => `--${flag}`);
  const listed = settings((setting) => !isOnOneLine(setting));
  return `Usage: claude-agents-mcp [serve] [flags]. ${about}\n${listed}\nFor several machines: ${names.join(", ")}\n`;
}

/** Keys of settings that only servers of several machines need. They share a line of that page. */
const FOR_MACHINES: readonly string[] = ["storePasswordFile", "node", "labels", "sharedFolders", "leaseMs"];
