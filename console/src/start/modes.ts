/** What each permission mode means, in few words. Keys are Claude Code's own. */
const WORDS: Readonly<Record<string, readonly [string, string]>> = {
  default: ["Ask first", "Asks before it changes files, runs commands or uses the network."],
  acceptEdits: ["Accept edits", "Changes files in its directory without asking, and asks for everything else."],
  plan: ["Plan", "Reads and plans. Nothing is changed before you have approved the plan."],
  dontAsk: ["Never ask", "Whatever would have to be asked is denied. What your rules allow is done."],
  auto: ["Auto", "A model looks at each request and lets harmless ones pass."],
  bypassPermissions: ["Allow everything", "Asks nothing: every tool runs at once. For sandboxes only."],
};

export function modeName(mode: string): string {
  return WORDS[mode]?.[0] ?? mode;
}

export function modeWords(mode: string): string {
  return WORDS[mode]?.[1] ?? "";
}
