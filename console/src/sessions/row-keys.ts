import type { RefObject } from "preact";
import { bindKeys } from "../state/keys.ts";

/** j and k go through the list; Enter is the link's own. */
export function bindRowKeys(list: RefObject<HTMLElement | null>): () => void {
  const step = (by: 1 | -1) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a.listed-title") ?? [])];
    const at = links.findIndex((link) => link === document.activeElement);
    const to = at === -1 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1);
    links[to]?.focus({ preventScroll: true });
    links[to]?.scrollIntoView({ block: "nearest" });
  };
  return bindKeys({ j: () => step(1), k: () => step(-1) });
}
