// Formulas of attention, as polyattn has people type them, in LaTeX. The grammar
// is that of include/polyattn/activation.h; a text outside of it gives null and is
// then shown as it is.

const longest = 200;
const words = new Set(['softmax', 'sigmoid', 'relu', 'exp', 'sum']);
const token = /\s*(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|[A-Za-z]+|[-+*/^()])/iy;

function tokenize(formula: string): string[] | null {
  const tokens: string[] = [];
  const trimmed = formula.trimEnd();
  token.lastIndex = 0;
  while (token.lastIndex < trimmed.length) {
    const match = token.exec(trimmed);
    if (match === null) return null;
    tokens.push(match[1]);
  }
  return tokens;
}

function numberTex(text: string): string {
  const [mantissa, exponent] = text.toLowerCase().split('e');
  if (exponent === undefined) return mantissa;
  const power = `10^{${Number(exponent)}}`;
  return mantissa === '1' ? power : `${mantissa}\\cdot ${power}`;
}

function wordTex(word: string): string | null {
  if (word === 'N') return 'N';
  const lower = word.toLowerCase();
  if (lower === 'x') return 'x';
  return words.has(lower) ? `\\mathrm{${lower}}` : null;
}

// The LaTeX of the token at `at`, and where the next one is.
function tokenTex(tokens: string[], at: number): [string, number] | null {
  const current = tokens[at];
  if (/^[\d.]/.test(current)) return [numberTex(current), at + 1];
  if (current === '^') {
    const exponent = tokens[at + 1] ?? '';
    return at > 0 && /^\d$/.test(exponent) ? [`^{${exponent}}`, at + 2] : null;
  }
  if (current.toLowerCase() === 'sqrt') {
    const rest = tokens.slice(at + 1, at + 4).join('');
    return rest === '(N)' ? ['\\sqrt{N}', at + 4] : null;
  }
  if (current === '*') return ['\\,', at + 1];
  if ('+-/()'.includes(current)) return [current, at + 1];
  const word = wordTex(current);
  return word === null ? null : [word, at + 1];
}

function balanced(tokens: string[]): boolean {
  let depth = 0;
  for (const current of tokens) {
    if (current === '(') ++depth;
    if (current === ')' && --depth < 0) return false;
  }
  return depth === 0;
}

export function formulaTex(formula: string): string | null {
  if (formula.length > longest) return null;
  const tokens = tokenize(formula);
  if (tokens === null || tokens.length === 0 || !balanced(tokens)) return null;
  let tex = '';
  for (let at = 0; at < tokens.length; ) {
    const piece = tokenTex(tokens, at);
    if (piece === null) return null;
    tex += piece[0];
    at = piece[1];
  }
  return tex;
}
