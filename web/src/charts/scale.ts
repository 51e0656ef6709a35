// Ranges and ticks of the y axis.

export type Extent = [number, number];

const wanted = 5; // ticks, about

function niceStep(width: number): number {
  const rough = width / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= rough) ?? 10;
  return factor * power;
}

export function linearTicks(low: number, high: number): number[] {
  if (!(high > low)) return [low];
  const step = niceStep(high - low);
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    ticks.push(i * step);
  return ticks;
}

// Powers of ten; between them 2 and 5 where there is room, and round numbers
// within a single power.
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  if (decades < 0.8) return linearTicks(low, high).filter((value) => value > 0);
  const factors = decades < 2.2 ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil(decades / 7));
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    if (power % stride !== 0) continue;
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999999 && value <= high * 1.000001) ticks.push(value);
    }
  }
  return ticks;
}

// A little more than the data, and down to 0 if that is near.
export function linearRange(low: number, high: number): Extent {
  if (low === high) {
    const pad = Math.abs(low) * 0.1 || 1;
    return [low - pad, high + pad];
  }
  const pad = (high - low) * 0.06;
  const bottom = low >= 0 && low < (high - low) * 0.4 ? 0 : low - pad;
  return [bottom, high + pad];
}

export function logRange(low: number, high: number): Extent {
  const pad = Math.max((high / low) ** 0.06, 1.05);
  return [low / pad, high * pad];
}
