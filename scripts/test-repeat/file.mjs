// Runs a test file a number of times, each time in a new worker, and reports each result to the parent.
import { createVitest } from "vitest/node";

const [file, times] = process.argv.slice(2);
const onDisconnect = () => process.exit(1);
process.once("disconnect", onDisconnect);

const vitest = await createVitest("test", { watch: false, maxWorkers: 1 });
await vitest.standalone();
const specifications = await vitest.globTestSpecifications([file]);
for (let run = 1; run <= Number(times); run += 1) {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const isPassed = testModules.length > 0 && testModules.every((each) => each.ok()) && unhandledErrors.length === 0;
  process.send(isPassed);
}
await vitest.close();
process.off("disconnect", onDisconnect);
process.disconnect();
