// The colours, held apart for eyes of all kinds: simulated by the matrices of
// Machado, Oliveira and Fernandes (2009) for complete loss, in linear light, and
// measured as distances in CIE Lab.
import { describe, expect, it } from 'vitest';
import { colours, lineStyle, Styles, type Shade } from '../../src/view/palette';

type Triple = [number, number, number];

const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1];
const kinds: Record<string, number[]> = {
  usual: identity,
  protanopia: [
    0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
  ],
  deuteranopia: [
    0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881,
  ],
  tritanopia: [
    1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039,
  ],
};
const pages: Record<Shade, string> = { light: '#ffffff', dark: '#1a1d21' };

function linear(hex: string): Triple {
  const channel = (at: number) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

function times(m: number[], [r, g, b]: Triple): Triple {
  const row = (i: number) => Math.min(1, Math.max(0, m[i] * r + m[i + 1] * g + m[i + 2] * b));
  return [row(0), row(3), row(6)];
}

function lab([r, g, b]: Triple): Triple {
  const f = (value: number) =>
    value > 216 / 24389 ? Math.cbrt(value) : ((24389 / 27) * value + 16) / 116;
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(a: Triple, b: Triple): number {
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

function luminance(hex: string): number {
  const [r, g, b] = linear(hex);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

describe.each(['light', 'dark'] as Shade[])('%s colours', (shade) => {
  it('stand out from the page', () => {
    for (const colour of colours[shade]) {
      const [a, b] = [luminance(colour), luminance(pages[shade])];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      expect(contrast, colour).toBeGreaterThanOrEqual(3);
    }
  });

  it.each(Object.keys(kinds))('differ under %s', (kind) => {
    const seen = colours[shade].map((colour) => lab(times(kinds[kind], linear(colour))));
    for (let i = 0; i < seen.length; ++i) {
      for (let j = 0; j < i; ++j)
        expect(
          distance(seen[i], seen[j]),
          `${colours[shade][i]} ${colours[shade][j]}`,
        ).toBeGreaterThan(15);
    }
  });
});

describe('styles', () => {
  it('gives 49 activations beside the baseline different looks', () => {
    const looks = Array.from({ length: 50 }, (_, i) => JSON.stringify(lineStyle(i)));
    expect(new Set(looks).size).toBe(50);
  });

  it('keeps what it has given, and takes any name', () => {
    const styles = new Styles();
    for (const name of ['softmax', '__proto__', 'constructor'])
      styles.add(name, name === 'softmax');
    expect(styles.of('softmax').colour).toBe(0);
    expect(styles.of('__proto__')).toEqual(lineStyle(1));
    styles.add('x', true);
    expect(styles.of('x')).toEqual(lineStyle(3));
    expect(styles.of('constructor')).toEqual(lineStyle(2));
  });
});
