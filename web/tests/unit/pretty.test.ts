import { expect, it } from 'vitest';
import { pretty } from '../../src/text/pretty';

it.each([
  ['1 <= ||softmax(S)||_F <= sqrt(N)', '1 ≤ ‖softmax(S)‖ ≤ √N'],
  ['E||A||_F^2 of x^p/sqrt(N)', 'E‖A‖² of xᵖ/√N'],
  ['every N x N matrix, 2 sqrt(N)', 'every N × N matrix, 2 √N'],
  ['<b>x^33</b>', '<b>x^33</b>'],
])('%s', (text, shown) => expect(pretty(text)).toBe(shown));
