// A short stroke in the style of an activation's lines. Its colour is a variable of
// the style sheet, so that it follows the theme by itself.
import { svg } from '../dom';
import type { LineStyle } from './palette';

export function swatch(style: LineStyle): SVGSVGElement {
  const line = svg('line', {
    x1: 0,
    y1: 5,
    x2: 26,
    y2: 5,
    style: `stroke: var(--c${style.colour})`,
    'stroke-width': 3,
    'stroke-dasharray': style.dash.join(' ') || 'none',
  });
  return svg(
    'svg',
    { class: 'swatch', viewBox: '0 0 26 10', width: 26, height: 10, 'aria-hidden': 'true' },
    line,
  );
}
