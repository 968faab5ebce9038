/**
 * Runs the scripted model in a process of its own, so that neither the server nor the client is charged for its work. Usage:
 * model-process.mjs CONFIG_FOLDER.
 */
import { startScriptedModel } from "../dist/demo/model/server.js";

const model = await startScriptedModel();
process.send(model.environment(process.argv[2]));
process.once("disconnect", () => process.exit(0));
