// What runs reach by length, as charts and as a table.
import type { LengthFigure, Run } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import { figureFactor, figureName, integer } from '../text/format';
import type { LengthLine, LengthPanel, LengthPoint } from './length-lines';

export type LengthRun = Run & { lengths: NonNullable<Run['lengths']> };

// Runs of one task have one figure.
export function runsWithLengths(runs: readonly Run[]): LengthRun[] {
  const all = runs.filter((run): run is LengthRun => run.lengths !== null);
  return all.filter((run) => run.lengths.figure === all[0].lengths.figure);
}

export function lengthsOf(runs: readonly LengthRun[]): number[] {
  const all = runs.flatMap((run) => run.lengths.results.map((result) => result.tokens));
  return [...new Set(all)].sort((a, b) => a - b);
}

// The mean over seeds, between the smallest and the largest.
function pointOf(values: number[]): LengthPoint {
  return {
    value: values.reduce((sum, value) => sum + value, 0) / values.length,
    low: Math.min(...values),
    high: Math.max(...values),
    count: values.length,
    expected: null,
  };
}

function linesOf(
  runs: readonly LengthRun[],
  figures: (run: LengthRun) => LengthFigure[],
): LengthLine[] {
  const byActivation = new Map<string, Map<number, number[]>>();
  for (const run of runs) {
    const factor = figureFactor(run.lengths.figure);
    const points = byActivation.get(run.activation) ?? new Map<number, number[]>();
    byActivation.set(run.activation, points);
    for (const { tokens, value } of figures(run))
      if (Number.isFinite(value))
        points.set(tokens, [...(points.get(tokens) ?? []), factor * value]);
  }
  return [...byActivation].map(([name, points]) => ({
    name,
    points: new Map([...points].map(([tokens, values]) => [tokens, pointOf(values)])),
  }));
}

// First by the tokens that were read, at the longest length before the others, then
// over all of them by length.
export function lengthPanels(runs: readonly LengthRun[]): LengthPanel[] {
  if (runs.length === 0) return [];
  const name = figureName[runs[0].lengths.figure];
  const unit = runs[0].lengths.figure === 'accuracy' ? `${name}, %` : name;
  const panels = lengthsOf(runs)
    .reverse()
    .map((length) => ({
      title: `${unit}, by tokens read, at length ${integer(length)}`,
      axis: 'tokens read',
      linear: true,
      lines: linesOf(
        runs,
        (run) => run.lengths.results.find((result) => result.tokens === length)?.places ?? [],
      ),
    }));
  const overall = {
    title: `${unit}, by length`,
    axis: 'length',
    linear: true,
    lines: linesOf(runs, (run) => run.lengths.results),
  };
  return [...panels, overall].filter((panel) => panel.lines.some((line) => line.points.size > 0));
}

export function lengthsTable(runs: readonly LengthRun[]): Table {
  const rows = runs.flatMap((run) =>
    run.lengths.results.flatMap((result) => [
      ...result.places.map((place) => ({ run, length: result.tokens, ...place })),
      { run, length: result.tokens, tokens: NaN, value: result.value },
    ]),
  );
  return tableOf('lengths', rows, [
    ['run', ({ run }) => run.name],
    ['activation', ({ run }) => run.activation],
    ['seed', ({ run }) => run.seed],
    ['length', ({ length }) => length],
    ['tokens_read_to', ({ tokens }) => (Number.isNaN(tokens) ? 'all' : tokens)],
    ['figure', ({ run }) => run.lengths.figure],
    ['value', ({ value }) => value],
  ]);
}
