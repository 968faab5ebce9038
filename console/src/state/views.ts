import type { Scope } from "../../../src/domain/principal.ts";

interface ViewTraits {
  /** Name in the header, in the window title and in the list of shortcuts. */
  readonly name: string;
  /** True if the header has a tab for the view. */
  readonly isTab: boolean;
  /** Keyboard shortcut: keys in sequence, separated by spaces. */
  readonly keys: string;
  /** Scope required by the shortcut. */
  readonly scope: Scope | undefined;
}

/**
 * Views reachable from everywhere, in the order of tabs. The first is the default. Address, tab, title, shortcut and help come
 * from `VIEWS`; `frame/current-view.tsx` has the components.
 */
export const VIEWS = {
  sessions: { name: "Sessions", isTab: true, keys: "g s", scope: undefined },
  // "g a" would conflict: in a focused card, "a" is Allow.
  approvals: { name: "Approvals", isTab: true, keys: "g w", scope: undefined },
  usage: { name: "Usage", isTab: true, keys: "g u", scope: undefined },
  start: { name: "New session", isTab: false, keys: "n", scope: "run" },
} as const satisfies Record<string, ViewTraits>;

export type ViewName = keyof typeof VIEWS;

export const VIEW_NAMES = Object.keys(VIEWS).filter(isViewName);

export function isViewName(name: string): name is ViewName {
  return Object.hasOwn(VIEWS, name);
}
