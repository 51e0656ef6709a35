// The heads of a layer on a logarithmic axis that all layers share: from the norm as
// drawn to the norm at the start, and softmax's.
import { picture, svg } from '../dom';
import type { HeadStart } from '../model/document';
import { rangeText } from './start-rows';
import type { StripScale } from './strip';

const width = 220;
const height = 26;
const middle = height / 2;
const margin = 8;

function hasPlace(value: number): boolean {
  return value > 0 && Number.isFinite(value);
}

export function startScale(heads: readonly HeadStart[]): StripScale | null {
  const values = heads
    .flatMap(({ before, after, softmax }) => [before, after, softmax])
    .filter(hasPlace);
  if (values.length === 0) return null;
  return {
    low: values.reduce((a, b) => Math.min(a, b)),
    high: values.reduce((a, b) => Math.max(a, b)),
  };
}

export function startPlace(value: number, { low, high }: StripScale): number {
  const share = high > low ? Math.log(value / low) / Math.log(high / low) : 0.5;
  return margin + share * (width - 2 * margin);
}

export function startWords(heads: readonly HeadStart[]): string {
  const of = (key: keyof HeadStart) => rangeText(heads.map((head) => head[key]));
  return `from ${of('before')} to ${of('after')}; softmax ${of('softmax')}`;
}

export function startStrip(
  heads: readonly HeadStart[],
  scale: StripScale | null,
  colour: number,
): SVGSVGElement {
  const ink = `var(--c${colour})`;
  const words = startWords(heads);
  const at = (values: number[], mark: (x: number) => SVGElement) =>
    scale === null ? [] : values.filter(hasPlace).map((value) => mark(startPlace(value, scale)));
  const open = (cx: number) =>
    svg('circle', { cx, cy: middle, r: 4, fill: 'none', style: `stroke: ${ink}` });
  const full = (cx: number) =>
    svg('circle', { cx, cy: middle, r: 4.5, style: `fill: ${ink}`, 'fill-opacity': 0.55 });
  const tick = (x: number) => svg('line', { x1: x, x2: x, y1: 2, y2: height - 2, class: 'one' });
  return picture(
    'dots',
    width,
    height,
    words,
    svg('title', {}, words),
    svg('line', { x1: 0, x2: width, y1: middle, y2: middle, class: 'strip-axis' }),
    at(
      heads.map((head) => head.softmax),
      tick,
    ),
    at(
      heads.map((head) => head.before),
      open,
    ),
    at(
      heads.map((head) => head.after),
      full,
    ),
  );
}
