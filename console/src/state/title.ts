import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** Subject of the current view, used in the window title; `undefined` means the name of the view. */
export const viewTitle = signal<string | undefined>(undefined);

/** Sets `viewTitle` while the view is shown, for example to the title of the session. */
export function useTitle(text: string | undefined): void {
  useEffect(() => {
    viewTitle.value = text;
    return () => {
      viewTitle.value = undefined;
    };
  }, [text]);
}
