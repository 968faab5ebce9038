import type { PendingRequest } from "../../../src/console/wire.ts";

/** Stands in for the card of branch c-requests. */
export function RequestCard({ request }: { readonly request: PendingRequest }) {
  return <p>{request.toolName} waits for an answer.</p>;
}
