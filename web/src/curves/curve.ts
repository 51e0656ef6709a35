// A curve of one run, and how curves of several runs come onto one grid.
//
// Runs of a comparison mostly have records at the same steps. Where they do not
// (other recording intervals, thinned records, time as the axis), values between
// two records are interpolated; nothing is drawn before a run's first record or
// after its last. Grids that would be finer than a screen can show are cut into
// stretches, of which every curve keeps its smallest and its largest value.

export interface Curve {
  x: Float64Array; // rising
  y: Float64Array; // not finite: nothing there
  points?: number; // records that there were, if known
}

export type Value = number | null;

export interface Grid {
  x: number[];
  cut: boolean; // into stretches
  shared: boolean; // every curve has its records exactly here, up to its end
}

const finest = 2400; // points
const stretches = 1000;

// Runs that have not finished yet, or diverged, end before the others.
function beginsWith(whole: Float64Array, part: Float64Array): boolean {
  return part === whole || part.every((value, i) => value === whole[i]);
}

// The index of the last element that is at most `value`, or -1.
export function lastAtMost(x: ArrayLike<number>, value: number): number {
  let low = -1;
  let high = x.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}

export function valueAt(curve: Curve, x: number): Value {
  const at = lastAtMost(curve.x, x);
  if (at < 0) return null;
  const left = curve.y[at];
  if (curve.x[at] === x) return Number.isFinite(left) ? left : null;
  if (at + 1 >= curve.x.length) return null;
  const right = curve.y[at + 1];
  if (!Number.isFinite(left) || !Number.isFinite(right)) return null;
  const share = (x - curve.x[at]) / (curve.x[at + 1] - curve.x[at]);
  return left + share * (right - left);
}

// A grid for all of them within the range.
export function gridOf(curves: Curve[], range: [number, number] | null = null): Grid {
  if (curves.length === 0) return { x: [], cut: false, shared: true };
  const longest = curves.reduce((a, b) => (b.x.length > a.x.length ? b : a)).x;
  const shared = curves.every((curve) => beginsWith(longest, curve.x));
  if (shared && longest.length <= finest) return { x: [...longest], cut: false, shared };
  const all = new Set<number>();
  for (const curve of curves) for (const x of curve.x) if (inside(x, range)) all.add(x);
  const x = [...all].sort((a, b) => a - b);
  return x.length <= finest
    ? { x: widened(x, curves, range), cut: false, shared: false }
    : cutGrid(x);
}

function inside(x: number, range: [number, number] | null): boolean {
  return range === null || (x >= range[0] && x <= range[1]);
}

// The neighbours beyond the edges of a range, so that lines run out of the frame.
function widened(x: number[], curves: Curve[], range: [number, number] | null): number[] {
  if (range === null) return x;
  const ends = new Set<number>();
  for (const curve of curves) {
    const before = lastAtMost(curve.x, range[0]);
    const after = lastAtMost(curve.x, range[1]) + 1;
    if (before >= 0) ends.add(curve.x[before]);
    if (after < curve.x.length) ends.add(curve.x[after]);
  }
  return [...new Set([...ends, ...x])].sort((a, b) => a - b);
}

// Two points for every stretch: which comes first is up to the curve.
function cutGrid(x: number[]): Grid {
  const low = x[0];
  const width = (x[x.length - 1] - low) / stretches;
  const points: number[] = [];
  for (let i = 0; i < stretches; ++i)
    points.push(low + (i + 0.25) * width, low + (i + 0.75) * width);
  return { x: points, cut: true, shared: false };
}

export function onGrid(curve: Curve, grid: Grid): Value[] {
  if (grid.cut) return onStretches(curve, grid.x);
  if (!grid.shared) return grid.x.map((x) => valueAt(curve, x));
  return grid.x.map((_, i) =>
    i < curve.y.length && Number.isFinite(curve.y[i]) ? curve.y[i] : null,
  );
}

function onStretches(curve: Curve, points: number[]): Value[] {
  const values: Value[] = [];
  const half = points[1] - points[0];
  for (let i = 0; i < points.length; i += 2) {
    const from = lastAtMost(curve.x, points[i] - half / 2 - half * 1e-9) + 1;
    const to = lastAtMost(curve.x, points[i + 1] + half / 2) + 1;
    const extremes = extremesOf(curve, from, to);
    if (extremes !== null) values.push(...extremes);
    else values.push(valueAt(curve, points[i]), valueAt(curve, points[i + 1]));
  }
  return values;
}

// The smallest and the largest value, in the order in which they come.
function extremesOf(curve: Curve, from: number, to: number): [number, number] | null {
  let low = -1;
  let high = -1;
  for (let i = from; i < to; ++i) {
    const y = curve.y[i];
    if (!Number.isFinite(y)) continue;
    if (low < 0 || y < curve.y[low]) low = i;
    if (high < 0 || y > curve.y[high]) high = i;
  }
  if (low < 0) return null;
  return low < high ? [curve.y[low], curve.y[high]] : [curve.y[high], curve.y[low]];
}
