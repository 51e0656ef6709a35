// Bytes that cannot be seen get a sign.
export function visibleToken(token: string): string {
  const signs: Record<string, string> = { ' ': '␣', '\n': '↵', '\t': '⇥', '\r': '␍', '': '∅' };
  return Object.hasOwn(signs, token) ? signs[token] : token;
}
