// Why no test finds a fault that was drawn, where that is right: the change can be seen by nobody. Keyed by file, text before
// and after.
export const REASONS = {};

export function reasonFor({ becomes, file, was }) {
  return REASONS[`${file}: ${was} -> ${becomes}`];
}
