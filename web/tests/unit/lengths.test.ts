import { describe, expect, it } from 'vitest';
import { readReport } from '../../src/model/read';
import {
  lengthPanels,
  lengthsOf,
  lengthsTable,
  runsWithLengths,
} from '../../src/sections/length-panels';

function result(length: number, bits: unknown, places: [number, unknown][] = []) {
  return {
    length,
    count: 10,
    bits_per_byte: bits,
    places: places.map(([to, value]) => ({ to, count: 1, bits_per_byte: value })),
  };
}

function runsOf(...all: [string, unknown[]][]) {
  const report = readReport({
    schema: 1,
    runs: all.map(([activation, lengths], i) => ({
      name: `run${i}`,
      activation,
      seed: i,
      lengths: { context: 256, lengths },
    })),
  });
  return runsWithLengths(report.runs);
}

describe('lengths', () => {
  it('are means over seeds, the longest first, and all of them by length', () => {
    const runs = runsOf(
      [
        'softmax',
        [
          result(2, 4, [
            [1, 5],
            [2, 3],
          ]),
          result(4, 6, [
            [1, 5],
            [2, 3],
            [4, 8],
          ]),
        ],
      ],
      [
        'softmax',
        [
          result(2, 5, [
            [1, 6],
            [2, 4],
          ]),
        ],
      ],
      [
        'x^2',
        [
          result(2, 'inf', [
            [1, 'inf'],
            [2, 2],
          ]),
        ],
      ],
    );
    const panels = lengthPanels(runs);
    expect(panels.map((panel) => panel.title)).toEqual([
      'bits per byte, by tokens read, at length 4',
      'bits per byte, by tokens read, at length 2',
      'bits per byte, by length',
    ]);
    const [softmax, quadratic] = panels[1].lines;
    expect(softmax.points.get(1)).toEqual({
      value: 5.5,
      low: 5,
      high: 6,
      count: 2,
      expected: null,
    });
    // What is not finite has no place in a drawing.
    expect([...quadratic.points.keys()]).toEqual([2]);
    expect(panels[2].lines[0].points.get(2)?.value).toBe(4.5);
    expect(lengthsOf(runs)).toEqual([2, 4]);
  });

  it('are percentages of probes', () => {
    const report = readReport({
      schema: 1,
      runs: [
        {
          activation: 'x',
          lengths: { context: 8, lengths: [{ length: 8, accuracy: 0.25, places: [] }] },
        },
      ],
    });
    const panels = lengthPanels(runsWithLengths(report.runs));
    expect(panels).toHaveLength(1);
    expect(panels[0].title).toBe('accuracy, %, by length');
    expect(panels[0].lines[0].points.get(8)?.value).toBe(25);
  });

  it('are nothing where there are none', () => {
    const report = readReport({ schema: 1, runs: [{ name: 'a', lengths: 7 }, { name: 'b' }] });
    expect(runsWithLengths(report.runs)).toEqual([]);
    expect(lengthPanels([])).toEqual([]);
    expect(runsOf(['x', []])).toEqual([]);
  });

  it('go into a table, a row for each place and one for all', () => {
    const table = lengthsTable(
      runsOf([
        'x',
        [
          result(2, 4, [
            [1, 5],
            [2, 3],
          ]),
        ],
      ]),
    );
    expect(table.rows.map((row) => row.slice(3))).toEqual([
      [2, 1, 'bits_per_byte', 5],
      [2, 2, 'bits_per_byte', 3],
      [2, 'all', 'bits_per_byte', 4],
    ]);
  });
});
