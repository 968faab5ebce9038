import { signal } from "@preact/signals";

/** The search field is to have the focus as soon as it is there. */
export const searchIsWanted = signal(false);
