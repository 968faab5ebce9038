/** What a shell command is seen to do. It only tells people why to look: a command is of the highest risk in any case. */

/** Of a command that is longer the beginning is looked at, characters. */
const LOOKED_AT = 10_000;

const NETWORK: readonly RegExp[] = [
  /\b(?:curl|wget|ssh|scp|sftp|ftp|rsync|telnet|nc|ncat|netcat|socat)\b/,
  /\bgit\s+(?:push|pull|fetch|clone|ls-remote|submodule)\b/,
  /\b(?:npm|pnpm|yarn|bun)\s+(?:publish|install|ci|i|add|update|login)\b/,
  /\b(?:npx|bunx|uvx)\b/,
  /\b(?:pip3?|uv|pipx|gem|go|cargo|brew|apt|apt-get|dnf|yum)\s+(?:\S+\s+)?(?:install|add|get|publish|push|download)\b/,
  /\b(?:docker|podman)\s+(?:push|pull|login)\b/,
  /\b(?:gh|aws|gcloud|az|kubectl|twine)\s/,
  /\b(?:Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\b/i,
  /\b(?:https?|ftp):\/\//i,
  /\/dev\/(?:tcp|udp)\//,
];

const DESTRUCTIVE: readonly RegExp[] = [
  /\brm\s(?:[^\n;&|]*\s)?(?:-[a-zA-Z]*[rR]|--recursive)/,
  /\b(?:rd|rmdir|Remove-Item)\b[^\n;&|]*(?:\s\/s\b|-Recurse)/i,
  /\bfind\b[^\n;|]*\s-(?:delete|exec(?:dir)?\s+rm)\b/,
  /\bxargs\b[^\n;|]*\brm\b/,
  /\bgit\s+reset\b[^\n;&|]*--hard/,
  /\bgit\s+clean\b[^\n;&|]*\s-[a-zA-Z]*f/,
  /\bgit\s+push\b[^\n;&|]*\s(?:--force\S*|--delete|--mirror|-[a-zA-Z]*f|\+\S)/,
  /\bgit\s+branch\b[^\n;&|]*\s-D/,
  /\bdd\s[^\n;&|]*\bof=/,
  /\b(?:mkfs(?:\.\w+)?|shred|wipefs|fdisk|parted|truncate)\b/,
  />\s*\/dev\/(?!null\b|stdout\b|stderr\b|tty\b|fd\/)/,
  /\b(?:drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from)\b/i,
  /\b(?:chmod|chown|chgrp)\s[^\n;&|]*(?:-[a-zA-Z]*R|--recursive)/,
  /\b(?:kill|pkill|killall|shutdown|reboot|halt|poweroff)\b/,
];

export function whyOfCommand(command: string): string[] {
  const text = command.slice(0, LOOKED_AT);
  const isOne = (of: readonly RegExp[]) => of.some((sign) => sign.test(text));
  return ["command", ...(isOne(NETWORK) ? ["network"] : []), ...(isOne(DESTRUCTIVE) ? ["destructive command"] : [])];
}
