/**
 * Runs the scripted model in a process of its own, so that the work of the model is charged neither to the server nor to the
 * client. Usage: model-process.mjs CONFIG_FOLDER.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { startScriptedModel } from "../dist/demo/model/server.js";
import { sharedNow } from "./observer.mjs";

/** Time from the arrival of a request to the gate in its answer, ms, with a wide margin. */
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
