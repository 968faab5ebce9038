import { createMemoryStore } from "../../src/store/memory.ts";
import { storeSuite } from "../support/store/suite.ts";

storeSuite("memory", () => {
  let now = 1_000_000;
  const store = createMemoryStore({ tick: () => now });
  const advance = (ms: number): void => void (now += ms);
  return Promise.resolve({ connect: (nodeId) => store.connect(nodeId), advance, close: () => Promise.resolve() });
});
