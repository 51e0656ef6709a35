// The seeds of an activation as dots on a line that all activations share.
import { picture, svg } from '../dom';
import type { Figure } from '../model/document';
import { figureText } from '../text/format';

export interface StripScale {
  low: number;
  high: number;
}

const width = 116;
const height = 26;
const margin = 8;

export function stripScale(values: number[]): StripScale {
  if (values.length === 0) return { low: 0, high: 1 };
  return { low: Math.min(...values), high: Math.max(...values) };
}

function place(value: number, { low, high }: StripScale): number {
  const share = high > low ? (value - low) / (high - low) : 0.5;
  return margin + share * (width - 2 * margin);
}

export function seedStrip(
  values: number[],
  scale: StripScale,
  colour: number,
  figure: Figure,
): SVGSVGElement {
  const ink = `var(--c${colour})`;
  const middle = height / 2;
  const words =
    values.length === 0
      ? 'no finished seeds'
      : `seeds: ${values.map((value) => figureText(figure, value)).join(', ')}`;
  const axis = svg('line', { x1: 0, x2: width, y1: middle, y2: middle, class: 'strip-axis' });
  const dots = values.map((value) =>
    svg('circle', {
      cx: place(value, scale),
      cy: middle,
      r: 4.5,
      style: `fill: ${ink}`,
      'fill-opacity': 0.55,
    }),
  );
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const tick =
    values.length > 1
      ? svg('line', {
          x1: place(mean, scale),
          x2: place(mean, scale),
          y1: 3,
          y2: height - 3,
          style: `stroke: ${ink}`,
          'stroke-width': 2,
        })
      : null;
  return picture('strip', width, height, words, svg('title', {}, words), axis, dots, tick);
}
