import { describe, expect, it } from 'vitest';
import { readReport } from '../../src/model/read';
import {
  rangeText,
  startedRuns,
  startGroups,
  startSentence,
  startTable,
} from '../../src/sections/start-rows';
import { startPlace, startScale } from '../../src/sections/start-strip';
import { fixtures } from '../fixtures';

function reportOf(...starts: unknown[]) {
  return readReport({
    schema: 1,
    runs: starts.map((start, i) => ({ name: `run${i}`, activation: 'x^3', seed: i + 1, start })),
  });
}

function runsOf(...starts: unknown[]) {
  return startedRuns(reportOf(...starts).runs);
}

const first = {
  factor: 1,
  gain: [[0.25, 0.5], [0.3125]],
  weight_before: [[36.6, 16.6], [20]],
  weight: [[1.04, 1.02], [1.03]],
  softmax: [[1.04, 1.02], [1.03]],
};
const second = {
  factor: 1,
  gain: [[0.5, 1]],
  weight_before: [[18.4, 0.5]],
  weight: [[1.06, 0.5]],
  softmax: [[1.06, 1]],
};

describe('reading', () => {
  it('takes lists by layer and head', () => {
    const [run] = runsOf(first);
    expect(run.start.factor).toBe(1);
    expect(run.start.layers.map((heads) => heads.length)).toEqual([2, 1]);
    expect(run.start.layers[0][1]).toEqual({ gain: 0.5, before: 16.6, after: 1.02, softmax: 1.02 });
  });

  it('takes what is missing or no number as NaN', () => {
    const [run] = runsOf({ gain: [[1, 'inf']], weight: [['x']], softmax: 7 });
    expect(run.start).toEqual({
      factor: NaN,
      layers: [
        [
          { gain: 1, before: NaN, after: NaN, softmax: NaN },
          { gain: Infinity, before: NaN, after: NaN, softmax: NaN },
        ],
      ],
    });
  });

  it.each([undefined, null, 3, [], {}, { gain: 3 }, { gain: [] }, { gain: [[], 3] }])(
    'takes %j as none',
    (start) => expect(runsOf(start)).toEqual([]),
  );
});

describe('groups', () => {
  it('average the seeds, head by head, of those that have it', () => {
    const [group, ...others] = startGroups(runsOf(first, second), 'bands');
    expect(others).toEqual([]);
    expect(group.seeds).toEqual([1, 2]);
    expect(group.layers[0][0].before).toBeCloseTo((36.6 + 18.4) / 2, 12);
    expect(group.layers[0][1].gain).toBe(0.75);
    expect(group.layers[1]).toEqual([{ gain: 0.3125, before: 20, after: 1.03, softmax: 1.03 }]);
  });

  it('keep seeds apart where each is shown, and factors always', () => {
    expect(startGroups(runsOf(first, second), 'lines').map((group) => group.seeds)).toEqual([
      [1],
      [2],
    ]);
    const groups = startGroups(runsOf(first, { ...second, factor: 0.3 }), 'bands');
    expect(groups.map((group) => group.factor)).toEqual([1, 0.3]);
  });

  it('leave out runs without a start', () => {
    const report = readReport(JSON.parse(JSON.stringify(fixtures.started())));
    const groups = startGroups(startedRuns(report.runs), 'bands');
    expect(groups.map((group) => group.activation)).toEqual(['x^3/sqrt(N)', 'x^2/sqrt(N)']);
  });
});

describe('sentence', () => {
  it('says what was scaled and from where', () => {
    expect(startSentence(runsOf(first))).toBe(
      'Scores were scaled by 0.25 to 0.5, so that ‖A‖ starts at softmax’s on the same scores; as drawn it would have started at 16.6 to 36.6.',
    );
  });

  it('says which share, and how many heads were left alone', () => {
    expect(startSentence(runsOf(first, second))).toBe(
      'Scores were scaled by 0.25 to 1, so that ‖A‖ starts at 0.5 to 1 times softmax’s on the same scores; as drawn it would have started at 0.5 to 36.6. 1 of 5 heads kept the scores that were drawn.',
    );
    const kept = { ...first, gain: [[1, 1], [1]] };
    expect(startSentence(runsOf(kept))).toBe(
      'No scores were scaled: ‖A‖ starts at softmax’s on the same scores.',
    );
  });

  it('has ranges of what there is', () => {
    expect(rangeText([])).toBe('–');
    expect(rangeText([NaN, 2])).toBe('2');
    expect(rangeText([2, Infinity])).toBe('2 to ∞');
    expect(rangeText(new Array(300_000).fill(1.0004))).toBe('1');
  });
});

describe('strip', () => {
  it('has a logarithmic axis of what is positive and finite', () => {
    const heads = runsOf({
      gain: [[1, 1]],
      weight_before: [[100, 'inf']],
      weight: [[1, 0]],
      softmax: [[10, -3]],
    })[0].start.layers[0];
    const scale = startScale(heads);
    if (scale === null) return expect.unreachable();
    expect(scale).toEqual({ low: 1, high: 100 });
    const [low, middle, high] = [1, 10, 100].map((value) => startPlace(value, scale));
    expect(low).toBeLessThan(middle);
    expect(middle - low).toBeCloseTo(high - middle, 9);
    expect(startScale([])).toBeNull();
    expect(startPlace(7, { low: 7, high: 7 })).toBeCloseTo((low + high) / 2, 9);
  });
});

describe('CSV', () => {
  it('has a line a head of every run', () => {
    const { columns, rows } = startTable(runsOf(first, second));
    expect(columns.slice(4)).toEqual(
      'factor layer head weight_before weight softmax gain'.split(' '),
    );
    expect(rows).toHaveLength(5);
    expect(rows[2].slice(2)).toEqual(['x^3', 1, 1, 2, 1, 20, 1.03, 1.03, 0.3125]);
  });
});
