/** Resolves with `otherwise` if the work fails, or has not ended after `ms`. The work then goes on without effect. */
export async function within<T, U>(work: Promise<T>, ms: number, otherwise: U): Promise<T | U> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<U>((resolve) => (timer = setTimeout(() => resolve(otherwise), ms)));
  return Promise.race([work.catch(() => otherwise), late]).finally(() => clearTimeout(timer));
}
