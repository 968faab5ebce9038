import { useComputed } from "@preact/signals";
import { now } from "../state/clock.ts";
import { ago, moment, ticking } from "./format.ts";

/** How long ago something was; it keeps up with the time. */
export function Ago({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={moment(at)}>
      {/* The key, since what is computed remembers the `at` that it began with. */}
      <AgoText key={at} at={at} />
    </time>
  );
}

function AgoText({ at }: { readonly at: number }) {
  const text = useComputed(() => ago(at, now.value));
  return <>{text}</>;
}

/** How long something has been going on; it counts. */
export function Since({ at }: { readonly at: number }) {
  return <SinceText key={at} at={at} />;
}

function SinceText({ at }: { readonly at: number }) {
  const text = useComputed(() => ticking(now.value - at));
  return <>{text}</>;
}
