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

function blend(from: Rgb, to: Rgb, share: number): Rgb {
  const mix = (channel: number) =>
    Math.round(from[channel] + share * (to[channel] - from[channel]));
  return [mix(0), mix(1), mix(2)];
}

// t from -1 to 1; what is beyond counts as the end.
export function diverging(t: number, shade: Shade): Rgb {
  const { zero, below, above } = ramps[shade];
  const stops = [zero, ...(t < 0 ? below : above)];
  const place = Math.min(Math.abs(t) || 0, 1) * (stops.length - 1);
  const index = Math.min(Math.floor(place), stops.length - 2);
  return blend(stops[index], stops[index + 1], place - index);
}

// A palette without a middle, from dark blue to yellow: brightness rises all the way,
// so that it can be read in grey too.
const ramp: Rgb[] = [
  [22, 24, 76],
  [36, 74, 148],
  [38, 134, 152],
  [112, 190, 108],
  [250, 232, 110],
];

// t from 0 to 1; what is beyond counts as the end.
export function sequential(t: number): Rgb {
  const place = Math.min(Math.max(t, 0), 1) * (ramp.length - 1);
  const index = Math.min(Math.floor(place), ramp.length - 2);
  return blend(ramp[index], ramp[index + 1], place - index);
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

function toRight(stops: Rgb[]): string {
  return `linear-gradient(to right, ${stops.map(css).join(', ')})`;
}

// Stops for a CSS gradient from -1 to 1.
export function gradient(shade: Shade): string {
  return toRight(Array.from({ length: 17 }, (_, i) => diverging(i / 8 - 1, shade)));
}

// From 0 to 1, without a middle.
export function sequentialGradient(): string {
  return toRight(Array.from({ length: 17 }, (_, i) => sequential(i / 16)));
}
