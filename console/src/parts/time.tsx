import { useComputed } from "@preact/signals";
import { now } from "../state/clock.ts";
import { ago, moment, runningDuration } from "./format.ts";

/** Time since `at` in words, updated with `now`. */
export function Ago({ at }: { readonly at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={moment(at)}>
      {/* `key` makes a new `AgoText`, because `useComputed` keeps the first `at`. */}
      <AgoText key={at} at={at} />
    </time>
  );
}

function AgoText({ at }: { readonly at: number }) {
  const text = useComputed(() => ago(at, now.value));
  return <>{text}</>;
}

/** Running duration since `at`, counting up. */
export function Since({ at }: { readonly at: number }) {
  return <SinceText key={at} at={at} />;
}

function SinceText({ at }: { readonly at: number }) {
  const text = useComputed(() => runningDuration(now.value - at));
  return <>{text}</>;
}
