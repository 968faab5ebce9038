/** Made by the first call that needs it; made again by the next one when it failed. */
export function lazy<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return async () => {
    made ??= make();
    try {
      return await made;
    } catch (error) {
      made = undefined;
      throw error;
    }
  };
}
