import { describe, expect, it } from 'vitest';
import { linearRange, linearTicks, logRange, logTicks } from '../../src/charts/scale';
import { ChartGroup } from '../../src/charts/group';

describe('ticks', () => {
  it.each([
    [0, 1],
    [77.3, 87.2],
    [-3, 12345],
    [1e-9, 2e-9],
  ])('from %d to %d are few and inside', (low, high) => {
    const ticks = linearTicks(low, high);
    expect(ticks.length).toBeGreaterThanOrEqual(3);
    expect(ticks.length).toBeLessThanOrEqual(8);
    for (const tick of ticks)
      expect(tick >= low - 1e-9 * high && tick <= high * (1 + 1e-9)).toBe(true);
  });

  it.each([
    [0.3, 2.4],
    [1, 1e5],
    [1e-12, 1e30],
    [5, 6],
  ])('of a logarithm from %d to %d are few and inside', (low, high) => {
    const ticks = logTicks(low, high);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(9);
    for (const tick of ticks) expect(tick >= low * 0.999 && tick <= high * 1.001).toBe(true);
  });

  it('gives constant curves room', () => {
    expect(linearRange(3, 3)[0]).toBeLessThan(3);
    expect(linearRange(0, 0)).toEqual([-1, 1]);
    expect(logRange(7, 7)[1]).toBeGreaterThan(7);
  });
});

describe('ChartGroup', () => {
  it('zooms within the full range, tells its members, and goes back', () => {
    const group = new ChartGroup(() => [0, 100]);
    let told = 0;
    group.add({ rangeChanged: () => ++told, cursorMoved: () => {} });
    group.zoom(20, 40);
    expect(group.visible()).toEqual([20, 40]);
    group.pan(10);
    expect(group.visible()).toEqual([80, 100]);
    group.zoomBy(100);
    expect(group.isZoomed()).toBe(false);
    group.zoom(50, 50);
    expect(group.isZoomed()).toBe(false);
    group.zoom(20, 40);
    group.reset();
    expect(group.visible()).toEqual([0, 100]);
    expect(told).toBe(5);
  });
});
