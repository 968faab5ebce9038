/** One session as a timeline. */
export function SessionView({ id }: { readonly id: string }) {
  return <h1>{id}</h1>;
}
