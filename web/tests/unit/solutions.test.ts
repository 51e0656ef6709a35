// Solutions of equations: read, decoded and put into words.
import { describe, expect, it } from 'vitest';
import { sequential } from '../../src/maps/colour';
import { lossTerm, relativeL1 } from '../../src/curves/metrics';
import { readReport } from '../../src/model/read';
import { decodeField, readSolution } from '../../src/model/read-solution';
import { fieldsOf, reading, solutionTable, summary } from '../../src/solutions/fields';
import { fixtures } from '../fixtures';
import { packField } from '../fixtures/solutions';

const small = () => ({
  columns: { name: 'x', values: [0, 0.5, 1] },
  rows: { name: 't', values: [0, 0.1] },
  exact: packField([1, 2, 3, 4, 5, 6]),
  error: packField([0.001, 0, 0, -0.002, NaN, 0]),
});

describe('a solution', () => {
  it('is read and decoded', () => {
    const solution = readSolution(small());
    expect(solution).not.toBeNull();
    const fields = fieldsOf(solution!)!;
    expect(fields.columns).toBe(3);
    expect(fields.rows).toBe(2);
    expect([fields.low, fields.high]).toEqual([1, 6]);
    expect(fields.exact[3]).toBeCloseTo(4, 4);
    expect(fields.error[3]).toBeCloseTo(-0.002, 7);
    expect(fields.predicted[0]).toBeCloseTo(1.001, 4);
    expect(fields.predicted[4]).toBeNaN();
    expect(fields.worst).toBe(3);
    expect(fields.missing).toBe(1);
  });

  it('is put into words and a table', () => {
    const solution = readSolution(small())!;
    const fields = fieldsOf(solution)!;
    expect(summary(solution, fields)).toBe(
      'Largest error 0.002 at x = 0, t = 0.1. Not finite, in grey: 1 prediction.',
    );
    expect(reading(solution, fields, 4)).toBe(
      'x = 0.5, t = 0.1: solution 5, prediction not finite',
    );
    expect(reading(solution, fields, 3)).toContain('error −0.002');
    const run = readReport(fixtures.solutions()).runs[0];
    const table = solutionTable(run, solution, fields);
    expect(table.columns).toEqual(['x', 't', 'solution', 'prediction', 'error']);
    expect(table.rows).toHaveLength(6);
    expect(table.rows[5].slice(0, 2)).toEqual([1, 0.1]);
  });

  it('that is damaged is left out', () => {
    expect(readSolution(undefined)).toBeNull();
    expect(readSolution(null)).toBeNull();
    expect(readSolution(3)).toBeNull();
    const damaged = (change: (solution: any) => void) => {
      const solution = small();
      change(solution);
      return readSolution(solution);
    };
    expect(damaged((solution) => (solution.columns = null))).toBeNull();
    expect(damaged((solution) => (solution.rows.values = [0]))).toBeNull();
    expect(damaged((solution) => (solution.rows.values = [1, 0]))).toBeNull();
    expect(damaged((solution) => (solution.rows.values = [0, 'inf']))).toBeNull();
    expect(damaged((solution) => (solution.rows.values = Array(2000).fill(0)))).toBeNull();
    expect(damaged((solution) => (solution.exact.low = 'nan'))).toBeNull();
    expect(damaged((solution) => (solution.error.step = -1))).toBeNull();
    const short = damaged((solution) => (solution.exact.values = 'AAAA'));
    expect(short).not.toBeNull();
    expect(fieldsOf(short!)).toBeNull();
    expect(decodeField({ low: 0, step: 1, values: '<not base64>' }, 2)).toBeNull();
  });
});

describe('runs on equations', () => {
  it('have errors and terms', () => {
    const [run] = readReport(fixtures.solutions()).runs;
    expect(run.relativeL2).toBeGreaterThan(0);
    expect(run.evaluation.terms.map(({ name }) => name)).toEqual([
      'residual',
      'initial',
      'boundary',
    ]);
    expect(lossTerm('initial')(run)?.y).toHaveLength(run.evaluation.step.length);
    expect(lossTerm('none')(run)).toBeNull();
    expect(relativeL1(run)?.y[0]).toBeGreaterThan(0);
  });
});

describe('the palette without a middle', () => {
  it('grows brighter all the way', () => {
    const brightness = (t: number) => {
      const [r, g, b] = sequential(t);
      return 0.299 * r + 0.587 * g + 0.114 * b;
    };
    for (let i = 0; i < 32; ++i)
      expect(brightness((i + 1) / 32)).toBeGreaterThan(brightness(i / 32));
    expect(sequential(-1)).toEqual(sequential(0));
    expect(sequential(2)).toEqual(sequential(1));
  });
});
