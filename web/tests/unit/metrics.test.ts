import { describe, expect, it } from 'vitest';
import { chartData } from '../../src/charts/data';
import { summaryRows } from '../../src/charts/summary';
import {
  curveOf,
  evalFigure,
  headNorm,
  layerNorm,
  secondsAt,
  trainLoss,
} from '../../src/curves/metrics';
import { readReport } from '../../src/model/read';
import { layerName } from '../../src/sections/layer-names';
import { references } from '../../src/sections/references';
import { fixtures } from '../fixtures';

const report = readReport(JSON.parse(JSON.stringify(fixtures.diverged())));
const [run] = report.runs;
const all = { layer: 'all', head: 'all', combine: 'max', relative: false } as const;

describe('metrics', () => {
  it('shows accuracy in percent', () => {
    const picked = evalFigure('accuracy')(run);
    expect(picked?.y.at(-1)).toBeCloseTo(100 * (run.accuracy ?? 0), 9);
  });

  it('combines heads and layers', () => {
    const heads = run.norms.layers.flatMap((layer) => layer.heads);
    const first = heads.map((head) => head.weightMax[0]);
    expect(headNorm('weight', all)(run)?.y[0]).toBe(Math.max(...first));
    const means = heads.map((head) => head.weightMean[0]);
    expect(headNorm('weight', { ...all, combine: 'mean' })(run)?.y[0]).toBeCloseTo(
      means.reduce((a, b) => a + b) / means.length,
      12,
    );
    expect(headNorm('jacobian', { ...all, layer: 1, head: 0 })(run)?.y[3]).toBe(
      run.norms.layers[1].heads[0].jacobianMax[3],
    );
    expect(layerNorm('gradient', { ...all, layer: 1 })(run)?.y[2]).toBe(
      run.norms.layers[1].gradNorm[2],
    );
    expect(headNorm('weight', { ...all, layer: 9 })(run)).toBeNull();
  });

  it('divides by the root of N', () => {
    const plain = headNorm('weight', all)(run);
    const relative = headNorm('weight', { ...all, relative: true })(run);
    expect(relative?.y[0]).toBeCloseTo((plain?.y[0] ?? 0) / 7, 12);
  });

  it('divides by the root of the N that each layer has', () => {
    const mixed = structuredClone(run);
    mixed.norms.layers[0].tokens = 16;
    mixed.norms.layers[1].tokens = 4;
    const relative = { ...all, relative: true };
    for (const [layer, root] of [
      [0, 4],
      [1, 2],
    ]) {
      const plain = headNorm('weight', { ...all, layer })(run);
      const divided = headNorm('weight', { ...relative, layer })(mixed);
      expect(divided?.y[0]).toBeCloseTo((plain?.y[0] ?? 0) / root, 12);
    }
    const each = [0, 1].map((layer) => headNorm('weight', { ...relative, layer })(mixed)?.y[0]);
    const two = { ...mixed, norms: { ...mixed.norms, layers: mixed.norms.layers.slice(0, 2) } };
    expect(headNorm('weight', relative)(two)?.y[0]).toBe(Math.max(...each.map(Number)));
  });

  it('draws the bounds of the layers that are shown', () => {
    const mixed = structuredClone(run);
    mixed.norms.layers.forEach((layer, i) => (layer.tokens = i === 0 ? 16 : 65));
    const values = (layer: number | 'all') =>
      references('weight', [mixed], { layer, relative: false }).map(({ value }) => value);
    expect(values(0)).toEqual([4]);
    expect(values(1)[0]).toBeCloseTo(Math.sqrt(65), 12);
    expect(values('all')[0]).toBeCloseTo(Math.sqrt(65), 12);
    expect(references('weight', [mixed], { layer: 'all', relative: false })[0].label).toContain(
      'N = 65',
    );
    expect(references('weight', [run], { layer: 0, relative: false })[0].value).toBeCloseTo(7, 12);
  });

  it('names layers by what they are', () => {
    const mixed = structuredClone(run);
    mixed.norms.layers[0].kind = 'window';
    mixed.norms.layers[0].stage = 0;
    mixed.norms.layers[1].stage = 1;
    expect(layerName([mixed], 0)).toBe('1, window attention of stage 1');
    expect(layerName([mixed], 1)).toBe('2, stage 2');
    expect(layerName([run], 1)).toBe('2');
    expect(layerName([mixed, run], 0)).toBe('1');
  });

  it('knows the time of a step', () => {
    expect(secondsAt(run, run.train.step[4])).toBe(run.train.seconds[4]);
    const middle = (run.train.step[4] + run.train.step[5]) / 2;
    expect(secondsAt(run, middle)).toBeCloseTo(
      (run.train.seconds[4] + run.train.seconds[5]) / 2,
      9,
    );
    expect(secondsAt(run, 0)).toBe(0);
  });

  it('puts records in order that are not', () => {
    const odd = {
      ...run,
      train: {
        ...run.train,
        step: Float64Array.from([3, 1, NaN, 2]),
        loss: Float64Array.from([30, 10, 5, 20]),
      },
    };
    expect(curveOf(odd, trainLoss, 'step')).toMatchObject({
      x: Float64Array.from([1, 2, 3]),
      y: Float64Array.from([10, 20, 30]),
    });
  });

  it('reads means and ranges over seeds, and counts what is not finite', () => {
    const entries = report.runs.flatMap((one) => {
      const curve = curveOf(one, trainLoss, 'step');
      return curve === null ? [] : [{ run: one, curve }];
    });
    const data = chartData(entries, 'bands', null);
    const first = data.readout(0).find((row) => row.activation === 'softmax');
    const values = report.runs
      .filter((one) => one.activation === 'softmax')
      .map((one) => one.train.loss[0]);
    expect(first?.value).toBeCloseTo(values.reduce((a, b) => a + b) / 3, 12);
    expect(first?.spread).toEqual({
      low: Math.min(...values),
      high: Math.max(...values),
      count: 3,
    });
    expect(summaryRows(entries).find((row) => row.activation === 'x^3')?.notFinite).toBe(1);
    expect(chartData(entries, 'lines', null).series).toHaveLength(9);
  });
});
