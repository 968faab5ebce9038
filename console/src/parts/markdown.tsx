/** A placeholder, until the one that knows Markdown is merged. */
export function Markdown({ text }: { readonly text: string }) {
  return <pre class="markdown">{text}</pre>;
}
