/**
 * The processor time that this process spends on the work, ms. Unlike elapsed time it does not depend on the load of the
 * machine: a bound on it finds work that grows out of proportion, and nothing else.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1_000;
}
