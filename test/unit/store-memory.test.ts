import { memoryStore } from "../kit/store/memory.ts";
import { storeSuite } from "../kit/store/suite.ts";

storeSuite("memory", async () => {
  let now = 1_000_000;
  const store = memoryStore({ tick: () => now });
  const advance = (ms: number): void => void (now += ms);
  const close = async () => Promise.resolve();
  return Promise.resolve({ connect: (nodeId) => store.connect(nodeId), advance, time: () => now, close });
});
