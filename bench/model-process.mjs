/** The scripted model by itself, so that its work is neither the server's nor the client's: model-process.mjs CONFIG_FOLDER. */
import { startScriptedModel } from "../dist/demo/model/server.js";

const model = await startScriptedModel();
process.send(model.environment(process.argv[2]));
process.once("disconnect", () => process.exit(0));
