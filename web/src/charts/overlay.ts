// What stands on a chart beside its curves: labelled reference lines, and crosses
// where runs diverged.
import uPlot from 'uplot';
import type { Ink } from '../theme';
import type { ChartData, Entry, Series } from './data';

export interface Reference {
  value: number;
  label: string;
}

export interface Mark {
  x: number;
  y: number;
  colour: string;
}

const fontSize = 11;

function drawLabel(u: uPlot, label: string, y: number, ink: Ink): void {
  const { ctx } = u;
  const x = u.bbox.left + u.bbox.width - 6 * devicePixelRatio;
  ctx.font = `${fontSize * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  ctx.setLineDash([]);
  ctx.lineJoin = 'round';
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.strokeStyle = ink.background;
  ctx.strokeText(label, x, y - 2 * devicePixelRatio);
  ctx.fillStyle = ink.text;
  ctx.fillText(label, x, y - 2 * devicePixelRatio);
}

// Labels that would lie on each other are left out from the second on; the text
// below the chart names all lines.
export function drawReferences(u: uPlot, references: Reference[], ink: Ink): void {
  const { ctx, bbox } = u;
  const taken: number[] = [];
  ctx.save();
  for (const { value, label } of references) {
    const y = u.valToPos(value, 'y', true);
    if (!(y >= bbox.top && y <= bbox.top + bbox.height)) continue;
    ctx.beginPath();
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
    ctx.strokeStyle = ink.muted;
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    if (taken.some((other) => Math.abs(other - y) < (fontSize + 3) * devicePixelRatio)) continue;
    taken.push(y);
    drawLabel(u, label, y, ink);
  }
  ctx.restore();
}

// The last finite records of runs that diverged.
export function divergenceMarks(entries: Entry[], colour: (activation: string) => string): Mark[] {
  const marks: Mark[] = [];
  for (const { run, curve } of entries) {
    if (run.state !== 'diverged') continue;
    let last = curve.y.length - 1;
    while (last >= 0 && !Number.isFinite(curve.y[last])) --last;
    if (last >= 0)
      marks.push({ x: curve.x[last], y: curve.y[last], colour: colour(run.activation) });
  }
  return marks;
}

export function drawMarks(u: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = u;
  const arm = 5 * devicePixelRatio;
  ctx.save();
  ctx.lineWidth = 2.5 * devicePixelRatio;
  ctx.setLineDash([]);
  for (const mark of marks) {
    const x = u.valToPos(mark.x, 'x', true);
    const y = u.valToPos(mark.y, 'y', true);
    const visible =
      x >= bbox.left && x <= bbox.left + bbox.width && y >= bbox.top && y <= bbox.top + bbox.height;
    if (!visible) continue;
    ctx.strokeStyle = mark.colour;
    ctx.beginPath();
    ctx.moveTo(x - arm, y - arm);
    ctx.lineTo(x + arm, y + arm);
    ctx.moveTo(x - arm, y + arm);
    ctx.lineTo(x + arm, y - arm);
    ctx.stroke();
  }
  ctx.restore();
}

// Few records: the range over the seeds is a line through each, because a band
// would be thin where there are two and nothing where there is one.
export function drawWhiskers(u: uPlot, data: ChartData, colour: (series: Series) => string): void {
  const { ctx } = u;
  const [from, to] = [u.scales.x.min ?? -Infinity, u.scales.x.max ?? Infinity];
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const band of data.bands) {
    ctx.strokeStyle = colour(data.series[band.high]);
    ctx.beginPath();
    data.x.forEach((x, i) => {
      const [high, low] = [data.series[band.high].values[i], data.series[band.low].values[i]];
      if (high === null || low === null || x < from || x > to) return;
      const left = u.valToPos(x, 'x', true);
      const [top, bottom] = [u.valToPos(high, 'y', true), u.valToPos(low, 'y', true)];
      if (!Number.isFinite(top) || !Number.isFinite(bottom)) return; // zero, on a logarithm
      ctx.moveTo(left, top);
      ctx.lineTo(left, bottom);
    });
    ctx.stroke();
  }
  ctx.restore();
}
