import { describe, expect, it } from 'vitest';
import { bandOf, bandOfStretches } from '../../src/curves/bands';
import { gridOf, onGrid, valueAt, type Curve } from '../../src/curves/curve';

function curve(x: number[], y: number[]): Curve {
  return { x: Float64Array.from(x), y: Float64Array.from(y) };
}

describe('valueAt', () => {
  const line = curve([10, 20, 30], [1, 3, NaN]);
  it('reads records and between them', () => {
    expect(valueAt(line, 10)).toBe(1);
    expect(valueAt(line, 15)).toBe(2);
  });
  it('invents nothing outside, nor beside what is not finite', () => {
    expect(valueAt(line, 9)).toBeNull();
    expect(valueAt(line, 25)).toBeNull();
    expect(valueAt(line, 30)).toBeNull();
    expect(valueAt(line, 31)).toBeNull();
  });
});

describe('grids', () => {
  it('is shared by runs of which one ended early', () => {
    const curves = [curve([1, 2, 3], [1, 2, 3]), curve([1, 2], [4, 5])];
    const grid = gridOf(curves);
    expect(grid.shared).toBe(true);
    expect(onGrid(curves[1], grid)).toEqual([4, 5, null]);
  });

  it('joins other steps by interpolation', () => {
    const curves = [curve([0, 10], [0, 10]), curve([0, 5, 10], [2, 2, 2])];
    const grid = gridOf(curves);
    expect(grid.x).toEqual([0, 5, 10]);
    expect(onGrid(curves[0], grid)).toEqual([0, 5, 10]);
  });

  it('keeps the extremes of each stretch when there is too much', () => {
    const count = 50_000;
    const x = Array.from({ length: count }, (_, i) => i);
    const y = x.map((i) => (i === 12_345 ? 100 : i === 23_456 ? -100 : Math.sin(i)));
    const noisy = curve(x, y);
    const grid = gridOf([noisy]);
    const values = onGrid(noisy, grid);
    expect(grid.cut).toBe(true);
    expect(grid.x.length).toBe(values.length);
    expect(values.length).toBeLessThan(2500);
    expect(Math.max(...values.map((value) => value ?? 0))).toBe(100);
    expect(Math.min(...values.map((value) => value ?? 0))).toBe(-100);
  });

  it('is finer within a range', () => {
    const x = Array.from({ length: 50_000 }, (_, i) => i);
    const line = curve(x, x);
    const grid = gridOf([line], [100, 300]);
    expect(grid.cut).toBe(false);
    expect(grid.x[0]).toBe(100);
    expect(grid.x.at(-1)).toBe(301);
  });
});

describe('bands', () => {
  it('has mean and range of the runs that are there', () => {
    const band = bandOf([
      [1, 2, null],
      [3, null, null],
    ]);
    expect(band.mean).toEqual([2, 2, null]);
    expect(band.low).toEqual([1, 2, null]);
    expect(band.high).toEqual([3, 2, null]);
    expect(band.count).toEqual([2, 1, 0]);
  });

  it('covers whole stretches', () => {
    const band = bandOfStretches([[1, 5]]);
    expect([band.mean, band.low, band.high]).toEqual([
      [3, 3],
      [1, 1],
      [5, 5],
    ]);
  });
});
