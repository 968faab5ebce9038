import type { Scope } from "../../../src/domain/principal.ts";

interface ViewTraits {
  /** Its name in the header, in the window's title and in the help on keys. */
  readonly name: string;
  /** Whether the header has a tab for it. */
  readonly isTab: boolean;
  /** What the keyboard opens it with: keys one after another, with spaces between them. */
  readonly keys: string;
  /** The scope without which its keys do nothing. */
  readonly scope: Scope | undefined;
}

/**
 * The views that are reached from everywhere, in the order of their tabs; the first is shown where the address names
 * none. Address, tab, title, shortcut and help are read from here; `frame/current-view.tsx` has what each draws.
 */
export const VIEWS = {
  sessions: { name: "Sessions", isTab: true, keys: "g s", scope: undefined },
  // Not "g a": in a focused card, "a" is Allow.
  approvals: { name: "Approvals", isTab: true, keys: "g w", scope: undefined },
  usage: { name: "Usage", isTab: true, keys: "g u", scope: undefined },
  start: { name: "New session", isTab: false, keys: "n", scope: "run" },
} as const satisfies Record<string, ViewTraits>;

export type ViewName = keyof typeof VIEWS;

export const VIEW_NAMES = Object.keys(VIEWS).filter(isViewName);

export function isViewName(name: string): name is ViewName {
  return Object.hasOwn(VIEWS, name);
}
