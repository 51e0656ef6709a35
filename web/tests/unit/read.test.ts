import { describe, expect, it } from 'vitest';
import { frameOf, queryName } from '../../src/maps/frame';
import { DocumentError, parseReport, readReport } from '../../src/model/read';
import { decodeWeights, readMaps } from '../../src/model/read-maps';
import { fixtures } from '../fixtures';
import { pack } from '../fixtures/maps';

describe('readReport', () => {
  it.each(Object.keys(fixtures).filter((name) => name !== 'many'))('reads %s', (name) => {
    const report = parseReport(JSON.stringify(fixtures[name]()));
    expect(report.version).toBe('0.1.0');
  });

  it('reads the strings for what is not finite', () => {
    const report = parseReport(JSON.stringify(fixtures.diverged()));
    expect(report.runs[6].maxWeightNorm).toBe(Infinity);
    expect(report.runs[6].train.loss.at(-1)).toBe(Infinity);
    expect(report.runs[6].train.gradNorm.at(-1)).toBeNaN();
  });

  it.each(['"__POLYATTN_REPORT__"', 'null', '[]', '3'])('says that %s is no report', (json) => {
    expect(() => parseReport(json)).toThrow(DocumentError);
  });

  it('says what is wrong with a document that is cut off', () => {
    const whole = JSON.stringify(fixtures.small());
    expect(() => parseReport(whole.slice(0, whole.length / 2))).toThrow(/cannot be read/);
  });

  it('names both schemas and the writer', () => {
    try {
      readReport({ schema: 2, polyattn: '9.9' });
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(DocumentError);
      expect((error as DocumentError).message).toMatch(/schema 1.*schema 2/);
      expect((error as DocumentError).advice).toContain('9.9');
    }
  });

  it('names the teacher of a run, if it had one', () => {
    const document = fixtures.small() as { runs: object[] };
    const taught = (teacher: unknown) =>
      readReport({ ...document, runs: [{ ...document.runs[0], teacher }] }).runs[0].teacher;
    const teacher = { run: 'runs/large', model: 'vit-small', activation: 'softmax', accuracy: 0.9 };
    expect(taught(teacher)).toBe('runs/large (vit-small, softmax, 90.0 %)');
    expect(taught({ ...teacher, accuracy: null })).toBe('runs/large (vit-small, softmax)');
    expect(taught(null)).toBe('');
    expect(taught(undefined)).toBe('');
  });

  it('survives fields of the wrong type', () => {
    const report = readReport({
      schema: 1,
      runs: [
        {
          train: { step: [1, 2], loss: 'x' },
          norms: [],
          maps: { rows: -1 },
          state: 'odd',
          seed: {},
        },
        null,
        7,
      ],
      comparisons: [{ rows: 'no' }, []],
      theory: 5,
      bench: {},
    });
    expect(report.runs).toHaveLength(3);
    expect(report.runs[0].train.loss).toEqual(Float64Array.from([NaN, NaN]));
    expect(report.runs[0].maps).toBeNull();
    expect(report.theory).toBeNull();
    expect(report.bench).toBeNull();
  });

  it('puts runs and rows together that are spelled differently', () => {
    const run = (activation: string, task: string) => ({ activation, task });
    const report = readReport({
      schema: 1,
      runs: [
        run('x^3/sqrt(N)', 'odd'),
        run('x^3 / sqrt( N )', 'odd'),
        run('<b>', 'odd'),
        run('y'.repeat(200), 'odd'),
      ],
      comparisons: [
        {
          task: '"odd"',
          baseline: '"<b>"',
          rows: [
            { activation: 'x^3/sqrt(N)' },
            { activation: '"<b>"' },
            { activation: `"${'y'.repeat(120)}..."` },
          ],
        },
      ],
    });
    expect(report.runs.map((one) => one.activation)).toEqual([
      'x^3/sqrt(N)',
      'x^3/sqrt(N)',
      '<b>',
      'y'.repeat(200),
    ]);
    expect(report.comparisons[0].task).toBe('odd');
    expect(report.comparisons[0].baseline).toBe('<b>');
    expect(report.comparisons[0].rows.map((row) => row.activation)).toEqual([
      'x^3/sqrt(N)',
      '<b>',
      'y'.repeat(200),
    ]);
  });

  it('takes intervals as they are written, and none for none', () => {
    const { comparisons } = readReport({
      schema: 1,
      comparisons: [
        {
          intervals: { note: '95 % intervals, all at once' },
          rows: [
            { pairs: 2, difference: -0.1, half_width: 0.05 },
            { pairs: 1, difference: -0.1, half_width: null },
          ],
        },
        { intervals: null },
      ],
    });
    expect(comparisons.map((one) => one.intervals)).toEqual(['95 % intervals, all at once', '']);
    expect(comparisons[0].rows.map((row) => row.halfWidth)).toEqual([0.05, NaN]);
  });

  it('cuts arrays to the steps they stand beside', () => {
    const report = readReport({
      schema: 1,
      runs: [{ train: { step: [1, 2], loss: [5, 4, 3, 2] } }],
    });
    expect(report.runs[0].train.loss).toEqual(Float64Array.from([5, 4]));
  });
});

describe('maps', () => {
  const nowhere = { input: 0, layer: 0, head: 0, window: 0 };
  const one = [{ input: 0, layer: 0, head: 0, scale: 1, values: '' }];

  it('knows how many rows come before those of the input', () => {
    const layerOf = (maps: object) =>
      readMaps({ rows: 6, columns: 6, maps: one, ...maps })?.layers[0];
    expect(layerOf({ class_token: false })?.prefix).toBe(0);
    expect(layerOf({ class_token: true })?.prefix).toBe(1);
    const layer = layerOf({ class_token: true, prefix: 2 });
    expect(layer?.prefix).toBe(2);
    const input = { label: '', picture: null, tokens: ['a', 'b', 'c', 'd'] };
    const frame = layer && frameOf(layer, 0, input);
    expect(frame && [0, 1, 2].map((row) => queryName(frame, row))).toEqual([
      'class token',
      'distillation token',
      'token 1 “a”',
    ]);
  });

  it('of layers are read by layer, and what cannot be is left out', () => {
    const window = { layer: 0, kind: 'window', stage: 1, rows: 4, columns: 4, patch: 2 };
    const windows = { height: 4, width: 4, side: 2, down: 1, right: 1 };
    const channel = { layer: 1, kind: 'channel', stage: 0, rows: 3, columns: 3 };
    const layersOf = (...layers: object[]) => readMaps({ layers, maps: one })?.layers;
    expect(layersOf({ ...window, windows }, channel)).toEqual([
      { ...window, windows, prefix: 0 },
      { ...channel, windows: null, patch: null, prefix: 0 },
    ]);
    for (const wrong of [
      { ...window },
      { ...window, windows: { ...windows, side: 3 } },
      { ...window, windows: { ...windows, down: 2 } },
      { ...window, windows: { ...windows, width: 1e9 } },
      { ...channel, layer: 0, kind: 'row' },
      { ...channel, layer: 0, rows: -1 },
    ])
      expect(layersOf(wrong, channel)).toHaveLength(1);
    expect(readMaps({ layers: [window], maps: one })).toBeNull();
  });

  it('gives weights back to half a step', () => {
    const weights = [0.5, -0.25, 0, 0.125];
    const decoded = decodeWeights({ ...nowhere, ...pack(weights) }, 2, 2);
    weights.forEach((weight, i) =>
      expect(Math.abs((decoded?.[i] ?? NaN) - weight)).toBeLessThanOrEqual(0.5 / 127 / 2 + 1e-7),
    );
  });

  it.each(['', 'AAAA', '%%%', 'A'.repeat(400)])('refuses %s', (values) => {
    expect(decodeWeights({ ...nowhere, scale: 1, values }, 2, 2)).toBeNull();
  });

  it('refuses sizes that cannot be', () => {
    expect(readMaps({ rows: 1e9, columns: 1e9, maps: one })).toBeNull();
    expect(readMaps({ rows: 1.5, columns: 2, maps: one })).toBeNull();
  });
});
