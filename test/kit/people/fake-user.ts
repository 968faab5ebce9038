import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer, Person, SeenForm } from "../clients/connection.ts";

/** Scripted people at clients with forms, and turns that ask. */

/** A person at a client; `does` is set by the test and returns the action for each form. */
export class FakeUser {
  readonly seen: SeenForm[] = [];
  does: Person = () => ({ action: "cancel" });
  readonly person: Person = (form, signal) => {
    this.seen.push(form);
    return this.does(form, signal);
  };
}

export const fillForm =
  (content: Record<string, string | string[]>): Person =>
  () => ({ action: "accept", content });

/** Declines after 400 ms, faster than a person can read the form. */
export const declineAfterReading: Person = async () => {
  await sleep(400);
  return { action: "decline" };
};

export const writeCall = (file: string) => ({ name: "Write", input: { file_path: file, content: "hello" } });
export const decisions = ({ events }: Answer) =>
  events.filter(({ type }) => type === "permission_result").map(({ data }) => [data["decision"], data["by"]]);
/** Script of a turn with sequential calls of `tools`. */
export const toolCalls = (tools: { name: string; input: object }[]) =>
  scriptTag([...tools.map(({ input, name }) => ({ tools: [{ name, input: { ...input } }] })), { text: "Over." }]);
