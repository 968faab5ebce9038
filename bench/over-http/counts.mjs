import { Refused, Unknown } from "./clients.mjs";

/** Counts results of the clients of one run. */
export class Counts {
  calls = 0;
  events = 0;
  vanished = 0;
  /** Clients whose protocol session the server did not know. */
  unknown = 0;
  /** Requests that found no server or got no answer, by message. Expected only around a restart. */
  unreachable = [];
  /** Number of `Refused` by status. */
  refused = {};
  /** Other errors, by message. */
  failed = [];
  /** Time from the timestamp of an event until its waiting client has read the answer, ms. */
  waking = [];

  /** Returns true if the client may retry after the error. */
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

/** Errors of broken connections, including a stream that ends before its answer. The client retries. */
const BROKEN =
  /fetch failed|stream ended without an answer|terminated|other side closed|ECONNREFUSED|ECONNRESET|EPIPE|socket hang up|aborted|Request timed out|Connection closed|SSE stream disconnected/;

function inWords(error) {
  return `${String(error.stack ?? error)} ${error.cause === undefined ? "" : String(error.cause)}`.slice(0, 600);
}

export function isBroken(error) {
  return BROKEN.test(`${String(error)} ${String(error?.cause)}`);
}
