// A palette with zero in the middle: blue below, orange above, and nearly the
// colour of the page at zero. Blue and orange are told apart by all common kinds of
// colour blindness.
import type { Shade } from '../view/palette';

export type Rgb = [number, number, number];

// From 0 to 1, for each sign.
const ramps: Record<Shade, { zero: Rgb; below: Rgb[]; above: Rgb[] }> = {
  light: {
    zero: [246, 246, 243],
    below: [
      [158, 202, 232],
      [54, 130, 196],
      [8, 58, 122],
    ],
    above: [
      [253, 196, 140],
      [226, 103, 28],
      [130, 42, 4],
    ],
  },
  dark: {
    zero: [30, 33, 39],
    below: [
      [28, 78, 132],
      [62, 140, 220],
      [178, 220, 255],
    ],
    above: [
      [122, 56, 18],
      [228, 118, 44],
      [255, 222, 178],
    ],
  },
};

// t from -1 to 1; what is beyond counts as the end.
export function diverging(t: number, shade: Shade): Rgb {
  const { zero, below, above } = ramps[shade];
  const stops = [zero, ...(t < 0 ? below : above)];
  const place = Math.min(Math.abs(t) || 0, 1) * (stops.length - 1);
  const index = Math.min(Math.floor(place), stops.length - 2);
  const share = place - index;
  const mix = (channel: number) =>
    Math.round(stops[index][channel] + share * (stops[index + 1][channel] - stops[index][channel]));
  return [mix(0), mix(1), mix(2)];
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r}, ${g}, ${b})`;
}

// Black or white, whatever can be read on it.
export function contrasting([r, g, b]: Rgb): string {
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#111' : '#fff';
}

export type Contrast = 'linear' | 'root';

// A weight as a place in the palette. The root lifts small weights beside large
// ones.
export function placed(weight: number, largest: number, contrast: Contrast): number {
  if (!(largest > 0)) return 0;
  const t = weight / largest;
  return contrast === 'linear' ? t : Math.sign(t) * Math.sqrt(Math.abs(t));
}

// Stops for a CSS gradient from -1 to 1.
export function gradient(shade: Shade): string {
  const stops = Array.from({ length: 17 }, (_, i) => css(diverging(i / 8 - 1, shade)));
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
