/** What each permission mode means, in a few words. The keys are Claude Code's own. */
const WORDS: Readonly<Record<string, readonly [string, string]>> = {
  default: ["Ask first", "Asks before it changes files, runs commands or uses the network."],
  acceptEdits: ["Accept edits", "Changes files in its directory without asking. Asks for everything else."],
  plan: ["Plan", "Reads and plans. Changes nothing until you approve the plan."],
  dontAsk: ["Never ask", "Runs what your rules allow and denies everything that would need approval."],
  auto: ["Auto", "A model reviews each request and allows harmless ones."],
  bypassPermissions: ["Allow everything", "Never asks: every tool runs at once. Use it in sandboxes only."],
};

export function modeName(mode: string): string {
  return WORDS[mode]?.[0] ?? mode;
}

export function modeWords(mode: string): string {
  return WORDS[mode]?.[1] ?? "";
}
