// Mathematics that C++ writes in ASCII, in the signs that a page has.
const powers: Record<string, string> = {
  2: '²',
  3: '³',
  4: '⁴',
  5: '⁵',
  6: '⁶',
  7: '⁷',
  8: '⁸',
  9: '⁹',
  p: 'ᵖ',
};

export function pretty(text: string): string {
  return text
    .replaceAll('||', '‖')
    .replace(/sqrt\(([A-Za-z0-9]+)\)/g, '√$1')
    .replace(/\bsqrt ([A-Z])\b/g, '√$1')
    .replaceAll('<=', '≤')
    .replaceAll('>=', '≥')
    .replaceAll('_F', '')
    .replace(/\^([2-9p])(?![\w(])/g, (_, power: string) => powers[power])
    .replace(/\b([A-Z]) x ([A-Z])\b/g, '$1 × $2');
}
