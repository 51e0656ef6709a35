// Several seeds as one: their mean, between the smallest and the largest.
import type { Value } from './curve';

export interface Band {
  mean: Value[];
  low: Value[];
  high: Value[];
  count: number[]; // of the runs that have a value there
}

// [runs][points] to [points] each.
export function bandOf(lines: Value[][]): Band {
  const length = lines[0]?.length ?? 0;
  const band: Band = { mean: [], low: [], high: [], count: [] };
  for (let i = 0; i < length; ++i) {
    let sum = 0;
    let low = Infinity;
    let high = -Infinity;
    let count = 0;
    for (const line of lines) {
      const value = line[i];
      if (value === null) continue;
      sum += value;
      low = Math.min(low, value);
      high = Math.max(high, value);
      ++count;
    }
    band.mean.push(count > 0 ? sum / count : null);
    band.low.push(count > 0 ? low : null);
    band.high.push(count > 0 ? high : null);
    band.count.push(count);
  }
  return band;
}

// In a grid that is cut into stretches the two points of a stretch hold extremes:
// the edges of the band are those of the stretch, its mean their middle.
export function bandOfStretches(lines: Value[][]): Band {
  const band = bandOf(lines);
  for (let i = 0; i + 1 < band.mean.length; i += 2) {
    const [a, b] = [band.mean[i], band.mean[i + 1]];
    if (a === null || b === null) continue;
    const low = Math.min(band.low[i] ?? Infinity, band.low[i + 1] ?? Infinity);
    const high = Math.max(band.high[i] ?? -Infinity, band.high[i + 1] ?? -Infinity);
    for (const j of [i, i + 1]) {
      band.mean[j] = (a + b) / 2;
      band.low[j] = low;
      band.high[j] = high;
    }
  }
  return band;
}
