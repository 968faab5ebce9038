/**
 * The processor time that this process spends on the work, ms. Unlike time on the clock it says nothing of what else the
 * machine has to do: a bound on it finds work that grows out of proportion, and nothing else.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1_000;
}
