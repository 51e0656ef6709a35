import katex from 'katex';
import { describe, expect, it } from 'vitest';
import { formulaTex } from '../../src/text/formula';

describe('formulaTex', () => {
  it.each([
    ['softmax', '\\mathrm{softmax}'],
    ['x^3/sqrt(N)', 'x^{3}/\\sqrt{N}'],
    ['1 + x + x^2/2', '1+x+x^{2}/2'],
    ['x^4/sum', 'x^{4}/\\mathrm{sum}'],
    ['relu^2/N', '\\mathrm{relu}^{2}/N'],
    ['2*x', '2\\,x'],
    ['-X^2', '-x^{2}'],
    ['1e-3x', '10^{-3}x'],
    ['(1 + x)^2/sqrt(N)', '(1+x)^{2}/\\sqrt{N}'],
  ])('%s', (formula, tex) => {
    expect(formulaTex(formula)).toBe(tex);
    expect(() => katex.renderToString(tex, { throwOnError: true, strict: 'error' })).not.toThrow();
  });

  it.each([
    '',
    '__proto__',
    '<img src=x onerror=alert(1)>',
    '\\href{javascript:alert(1)}{x}',
    'x^{3}',
    'sqrt(x)',
    'x^',
    '^2',
    '(x',
    'x)',
    'x^33',
    'n',
    'x'.repeat(500),
    'constructor',
    'x</script>',
  ])('leaves %s as text', (text) => {
    expect(formulaTex(text)).toBeNull();
  });
});
