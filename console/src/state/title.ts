import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** What the view that is shown is about; the frame puts it into the title of the window. */
export const title = signal<string | undefined>(undefined);

/** For views whose title is more than their name: the session's. */
export function useTitle(text: string | undefined): void {
  useEffect(() => {
    title.value = text;
    return () => {
      title.value = undefined;
    };
  }, [text]);
}
