import { CALLER, CONSOLE, USER } from "../domain/approvals/answer-source.ts";
import type { Approver } from "./approver.ts";
import { webhook } from "./webhook/webhook.ts";

/** Approvers by the names of `--approvals`. A new approver is a folder beside this file, and a line here. */
export const APPROVERS: readonly Approver[] = [
  {
    name: USER,
    words: { who: "the person at the client", by: "by the person at the client" },
    help: "a form at a client that can show one",
    docs: {
      is: "the person at a client that shows forms",
      time: "300 s from when the form is shown (`user:<ms>` sets another)",
    },
    // Long enough to be called to a screen and to read the request.
    time: { usualMs: 300_000 },
  },
  {
    name: CONSOLE,
    words: { who: "this console", by: "in the console" },
    help: "the web page",
    docs: {
      is: "a person at the [console](console.md) with scope `approve`",
      time: "600 s from when it is shown there, or the time of `caller` where that is longer (`console:<ms>`); `console:0` has no turn of its own, except for sessions whose last prompt came from the console",
    },
    time: { usualMs: 600_000, atLeastCallers: true, mayHaveNone: true },
  },
  webhook,
  {
    name: CALLER,
    words: { who: "the calling model", by: "by the calling model" },
    help: "the model, by claude_code_check",
    docs: {
      is: "the calling model, through `claude_code_check`",
      time: "60 s from when it is notified (`caller:<ms>`), or its own `permissionRequestTimeoutMs`",
    },
    time: { usualMs: 60_000 },
  },
];
