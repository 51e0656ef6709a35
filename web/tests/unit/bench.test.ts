import { describe, expect, it } from 'vitest';
import { readBench } from '../../src/model/read-extras';
import { benchPanels } from '../../src/sections/bench-lines';
import { lengthData } from '../../src/sections/length-lines';
import { makeBench } from '../fixtures/theory';

const measured = { name: 'a', threads: 1, activation: 'x', N: 64, median_ms: 2 };

describe('the document of polyattn bench', () => {
  it('may be a list, one row, or lists by name', () => {
    expect(readBench([measured, measured])).toHaveLength(2);
    expect(readBench(measured)).toHaveLength(1);
    const groups = readBench({ kernels: [measured], linear: [measured], machine: 'x', seed: 1 });
    expect(groups?.map((row) => row.setting)).toEqual(['kernels, 1 thread', 'linear, 1 thread']);
  });

  it('may have rows of a kind that is not known', () => {
    const rows = readBench([{ name: 'new', speedup_of_something: 3 }, 7, null]);
    expect(rows?.map((row) => row.name)).toEqual(['new', '', '']);
    expect(benchPanels(rows ?? [])).toEqual([]);
  });

  it.each([[null], [[]], [{}], ['text'], [{ rows: 7 }]])('is absent if it is %j', (value) => {
    expect(readBench(value)).toBeNull();
  });
});

describe('lines over the number of tokens', () => {
  it('are those that differ in length alone, a line for each path', () => {
    const panels = benchPanels(readBench(makeBench()) ?? []);
    expect(panels.map((panel) => panel.title)).toEqual([
      'milliseconds: forward, f32, B 1, H 8, D 64, 1 thread',
      'MB beside inputs and outputs: forward, f32, B 1, H 8, D 64, 1 thread',
    ]);
    const [times, memory] = panels.map((panel) => lengthData(panel.lines));
    expect(times.x).toEqual([256, 1024, 4096, 16384]);
    expect(times.series.map((series) => series.label)).toEqual([
      'x^3/sqrt(N), dense',
      'x^3/sqrt(N), linear',
    ]);
    expect(times.series[0].values[1]).toBeCloseTo(1.2);
    expect(memory.series[1].values).toEqual([3.1, 3.1, 3.1, 3.1]);
  });

  it('hold what is materialised beside ours', () => {
    const row = (tokens: number) => ({ ...measured, N: tokens, rival_ms: tokens });
    const [panel] = benchPanels(readBench([row(64), row(128)]) ?? []);
    expect(panel.lines.map((line) => line.name)).toEqual(['x', 'x, materialised']);
    expect(panel.lines[1].points.get(128)?.value).toBe(128);
  });
});
