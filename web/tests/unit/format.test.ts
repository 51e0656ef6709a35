import { describe, expect, it } from 'vitest';
import {
  duration,
  integer,
  megabytes,
  moment,
  signed,
  significant,
  tick,
} from '../../src/text/format';

describe('format', () => {
  it.each([
    [6.7410463, '6.74'],
    [20779.6, '20\u202f800'],
    [411_000, '4.11×10⁵'],
    [99_949, '99\u202f900'],
    [99_999, '1.00×10⁵'],
    [0.000123, '1.23×10⁻⁴'],
    [-0.5, '\u22120.5'],
    [0, '0'],
    [NaN, '–'],
    [Infinity, '∞'],
    [-Infinity, '\u2212∞'],
  ])('significant(%d)', (value, text) => expect(significant(value)).toBe(text));

  it.each([
    [100_000, '10⁵'],
    [200_000, '2×10⁵'],
    [0.0005, '0.0005'],
    [0.1 + 0.2, '0.3'],
    [-10_000, '\u221210\u202f000'],
  ])('tick(%d)', (value, text) => expect(tick(value)).toBe(text));

  it('writes times', () => {
    expect(duration(12.34)).toBe('12.3 s');
    expect(duration(115)).toBe('1:55 min');
    expect(duration(3723)).toBe('1:02:03 h');
    expect(duration(NaN)).toBe('–');
    expect(moment('2026-11-16T10:00:00Z')).toBe('2026-11-16 10:00 UTC');
    expect(moment('<b>')).toBe('<b>');
  });

  it('writes the rest', () => {
    expect(integer(72202)).toBe('72\u202f202');
    expect(megabytes(239.84)).toBe('240 MB');
    expect(signed(0.5, 1)).toBe('+0.5');
    expect(signed(-0.5, 1)).toBe('\u22120.5');
  });
});
