import { Refused, Unknown } from "./clients.mjs";

/** What the clients of one run have met with. */
export class Counts {
  calls = 0;
  events = 0;
  vanished = 0;
  /** Clients that were told that their protocol session is not known. */
  unknown = 0;
  /** Requests that found no server, or got no answer of it, in words: only a restart makes that right. */
  unreachable = [];
  /** By status. */
  refused = {};
  /** What else went wrong, in words. */
  failed = [];
  /** From the time that stands in an event to the answer that its waiting client has read, ms. */
  waking = [];

  /** Whether it is one of those that may be tried again. */
  note(error) {
    if (error instanceof Refused) this.refused[error.status] = (this.refused[error.status] ?? 0) + 1;
    else if (error instanceof Unknown) this.unknown += 1;
    else if (isBroken(error)) this.unreachable.push(inWords(error));
    else {
      this.failed.push(inWords(error));
      return false;
    }
    return true;
  }
}

/** A stream that ends before its answer is a connection that broke: the client asks again. */
const BROKEN =
  /fetch failed|stream ended without an answer|terminated|other side closed|ECONNREFUSED|ECONNRESET|EPIPE|socket hang up|aborted|Request timed out|Connection closed|SSE stream disconnected/;

function inWords(error) {
  return `${String(error.stack ?? error)} ${error.cause === undefined ? "" : String(error.cause)}`.slice(0, 600);
}

export function isBroken(error) {
  return BROKEN.test(`${String(error)} ${String(error?.cause)}`);
}
