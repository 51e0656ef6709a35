import { describe, expect, it } from 'vitest';
import { readBench } from '../../src/model/read-extras';
import { benchPanels, qualityPanels } from '../../src/sections/bench-lines';
import { lengthData } from '../../src/sections/length-lines';
import { makeBench } from '../fixtures/theory';

const measured = { name: 'a', threads: 1, activation: 'x', N: 64, unit: 'ms', ours: 2 };

describe('the document of polyattn bench', () => {
  it('may be a list, one row, or lists by name', () => {
    expect(readBench([measured, measured])?.rows).toHaveLength(2);
    expect(readBench(measured)?.rows).toHaveLength(1);
    const groups = readBench({ rows: [measured], linear: [measured], target: 'x', seed: 1 });
    expect(groups?.rows.map((row) => row.setting)).toEqual(['1 thread', 'linear, 1 thread']);
  });

  it('may have rows of a kind that is not known', () => {
    const bench = readBench([{ name: 'new', speedup_of_something: 3 }, { error: 1e-7 }, 7, null]);
    expect(bench?.rows.map((row) => row.name)).toEqual(['new']);
    expect(bench?.tables[0].columns).toEqual(['error']);
    expect(bench?.tables[0].rows[0]).toEqual([1e-7]);
    expect(benchPanels(bench?.rows ?? [])).toEqual([]);
  });

  it('may be that of bench linear', () => {
    const planner = (tokens: number) => ({
      op: 'forward',
      activation: 'x^2/sqrt(N)',
      N: tokens,
      D: 64,
      causal: 'none',
      threads: 1,
      chosen: 'linear',
      dense_ms: tokens ** 2,
      linear_ms: tokens,
    });
    const row = {
      name: 'forward N=16384',
      threads: 1,
      unit: 'ms',
      ours: 2,
      baseline: 8,
      baseline_name: 'dense',
      value: 4,
      value_q1: 3.9,
      value_q3: 4.1,
      measure: 'speedup',
      bound: 'at least',
      goal: 3,
      reached: true,
    };
    const bench = readBench({ target: 'avx2', rows: [row], planner: [64, 128].map(planner) });
    expect(bench?.rows[0]).toMatchObject({ measure: 'speedup', baseline: 'dense', goal: 3 });
    expect(bench?.rows[0].time.median).toBe(2);
    expect(bench?.rows[0].baselineTime.median).toBe(8);
    expect(bench?.rows[0].speedup).toEqual({ median: 4, low: 3.9, high: 4.1 });
    const [panel] = benchPanels(bench?.paths ?? []);
    expect(panel.lines.map((line) => line.name)).toEqual([
      'x^2/sqrt(N), dense',
      'x^2/sqrt(N), linear',
    ]);
    expect(panel.lines[0].points.get(128)?.value).toBe(128 ** 2);
    expect(bench?.tables.map((table) => table.title)).toEqual(['planner']);
  });

  it('may weigh memory instead of time', () => {
    const memory = { ...measured, unit: 'MB', ours: 26, baseline: 1359, measure: 'speedup' };
    const row = readBench({ rows: [memory] })?.rows[0];
    expect(row?.megabytes).toEqual({ ours: 26, baseline: 1359 });
    expect(row?.time.median).toBeNaN();
  });

  it.each([[null], [[]], [{}], ['text'], [{ rows: 7 }]])('is absent if it is %j', (value) => {
    expect(readBench(value)).toBeNull();
  });
});

describe('lines over the number of tokens', () => {
  it('are those that differ in length alone, a line for each path', () => {
    const panels = benchPanels(readBench(makeBench())?.rows ?? []);
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
    const materialised = { ...measured, baseline_name: 'materialised' };
    const row = (tokens: number) => ({ ...materialised, N: tokens, baseline: tokens });
    const [panel] = benchPanels(readBench([row(64), row(128)])?.rows ?? []);
    expect(panel.lines.map((line) => line.name)).toEqual(['x', 'x, materialised']);
    expect(panel.lines[1].points.get(128)?.value).toBe(128);
  });
});

describe('accuracy against processor time', () => {
  const curve = {
    model: 'x^2/N',
    by: 'polyattn',
    target: 0.8,
    processor_seconds: [10, 20],
    accuracy: [0.5, 0.85],
  };
  const softmax = { ...curve, model: 'softmax', by: 'PyTorch', processor_seconds: [30, 60] };

  it('is a line for each model, and the target', () => {
    const bench = readBench({ quality_curves: [curve, softmax] });
    expect(bench?.tables).toEqual([]);
    const [panel] = qualityPanels(bench?.curves ?? []);
    expect(panel.time).toBe(true);
    const data = lengthData(panel.lines);
    expect(data.x).toEqual([10, 20, 30, 60]);
    const values = new Map(data.series.map(({ label, values }) => [label, values]));
    expect(values.get('x^2/N, polyattn')).toEqual([50, 85, null, null]);
    expect(values.get('softmax, PyTorch')).toEqual([null, null, 50, 85]);
    expect(values.get('x^2/N, polyattn, expected')).toEqual([80, 80, null, null]);
  });

  it('leaves out what is no number', () => {
    const broken = { ...curve, processor_seconds: [10, 'nan', 30, 40], accuracy: [0.5, 1, null] };
    const bench = readBench({ quality_curves: [broken, 7] });
    expect(bench?.curves[0].points).toEqual([{ seconds: 10, accuracy: 0.5 }]);
    expect(qualityPanels(bench?.curves ?? [])).toEqual([]);
  });
});
