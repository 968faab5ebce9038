/**
 * Runs the scripted model in a process of its own, so that neither the server nor the client is charged for its work. Usage:
 * model-process.mjs CONFIG_FOLDER.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { startScriptedModel } from "../dist/demo/model/server.js";
import { sharedNow } from "./observer.mjs";

/** From the arrival of a request to the gate in its answer, ms: much more than that takes. */
const TO_THE_GATE_MS = 50;

const model = await startScriptedModel();
process.on("message", (wanted) => void open(wanted));
process.send(model.environment(process.argv[2]));
process.once("disconnect", () => process.exit(0));

async function open({ entry, gate, mark }) {
  if (mark !== undefined) {
    await model.waitForRequest(({ served, told }) => served.entry === entry && told.includes(mark));
    await sleep(TO_THE_GATE_MS);
  }
  process.send(sharedNow());
  model.release(gate);
}
