// Ratios of polyattn bench as dots with their quartiles, beside their goals.
import { picture, svg } from '../dom';
import type { BenchRow } from '../model/document';
import { fixed, significant } from '../text/format';

export function shown(row: BenchRow, value: number): string {
  return ratios.includes(row.measure) ? fixed(value, 2) : significant(value);
}

const width = 180;
const height = 24;

// On an axis of logarithms, so that twice as fast and half as fast are equally far
// from the line at 1.
export function dotPlot(row: BenchRow, range: [number, number]): SVGSVGElement | null {
  if (!isRatio(row) || !(row.value.median > 0)) return null;
  const place = (value: number) =>
    6 +
    ((Math.log(value) - Math.log(range[0])) / (Math.log(range[1]) - Math.log(range[0]))) *
      (width - 12);
  const middle = height / 2;
  const { median, low, high } = row.value;
  const whisker =
    low > 0 && high > 0
      ? svg('line', { x1: place(low), x2: place(high), y1: middle, y2: middle, class: 'whisker' })
      : null;
  const goal =
    row.goal !== null && row.goal > 0
      ? svg('line', {
          x1: place(row.goal),
          x2: place(row.goal),
          y1: 3,
          y2: height - 3,
          class: 'goal',
        })
      : null;
  const words = `${shown(row, median)}${row.goal === null ? '' : `, goal ${shown(row, row.goal)}`}`;
  return picture(
    'dots',
    width,
    height,
    words,
    svg('line', { x1: place(1), x2: place(1), y1: 0, y2: height, class: 'one' }),
    goal,
    whisker,
    svg('circle', {
      cx: place(median),
      cy: middle,
      r: 5,
      class: row.reached === false ? 'dot missed' : 'dot',
    }),
  );
}

const ratios = ['sgemm_ratio', 'time_ratio', 'speedup'];

// Everything else has its own scale, and stands in numbers only.
function isRatio(row: BenchRow): boolean {
  return ratios.includes(row.measure) && row.megabytes === null;
}

export function rangeOf(rows: BenchRow[]): [number, number] {
  const values = rows
    .filter(isRatio)
    .flatMap((row) => [row.value.median, row.value.low, row.value.high, row.goal ?? NaN, 1]);
  const usable = values.filter((value) => value > 0 && Number.isFinite(value));
  const low = Math.min(0.8, ...usable) / 1.05;
  return [low, Math.max(1.25, ...usable) * 1.05];
}
