// The numbers of a solution: what is exact, what the model says, and the error.
import type { Run, Solution } from '../model/document';
import { decodeField } from '../model/read-solution';
import type { Table } from '../text/csv';
import { plural, significant } from '../text/format';

export interface Fields {
  columns: number;
  rows: number;
  exact: Float64Array; // row by row; NaN: not finite
  predicted: Float64Array;
  error: Float64Array;
  low: number; // of exact
  high: number;
  largest: number; // of the absolute errors that are finite
  worst: number; // where that is
  missing: number; // errors that are not finite
}

const cache = new WeakMap<Solution, Fields | null>();

function fieldsFrom(exact: Float64Array, error: Float64Array, columns: number): Fields {
  const fields: Fields = {
    columns,
    rows: exact.length / columns,
    exact,
    predicted: exact.map((value, i) => value + error[i]),
    error,
    low: Infinity,
    high: -Infinity,
    largest: 0,
    worst: 0,
    missing: 0,
  };
  for (let i = 0; i < exact.length; ++i) {
    if (exact[i] < fields.low) fields.low = exact[i];
    if (exact[i] > fields.high) fields.high = exact[i];
    if (Number.isNaN(error[i])) ++fields.missing;
    if (Math.abs(error[i]) > fields.largest) {
      fields.largest = Math.abs(error[i]);
      fields.worst = i;
    }
  }
  return fields;
}

// Null if the data is damaged.
export function fieldsOf(solution: Solution): Fields | null {
  const known = cache.get(solution);
  if (known !== undefined) return known;
  const columns = solution.columns.values.length;
  const count = columns * solution.rows.values.length;
  const exact = decodeField(solution.exact, count);
  const error = decodeField(solution.error, count);
  const fields = exact === null || error === null ? null : fieldsFrom(exact, error, columns);
  cache.set(solution, fields);
  return fields;
}

export function placeName({ columns, rows }: Solution, index: number): string {
  const x = columns.values[index % columns.values.length];
  const t = rows.values[Math.floor(index / columns.values.length)];
  return `${columns.name} = ${significant(x)}, ${rows.name} = ${significant(t)}`;
}

export function reading(solution: Solution, fields: Fields, index: number): string {
  const { exact, predicted, error } = fields;
  const says = Number.isNaN(predicted[index]) ? 'not finite' : significant(predicted[index]);
  const off = Number.isNaN(error[index]) ? '' : `, error ${significant(error[index])}`;
  return `${placeName(solution, index)}: solution ${significant(exact[index])}, prediction ${says}${off}`;
}

export function summary(solution: Solution, fields: Fields): string {
  const missing =
    fields.missing === 0 ? '' : ` Not finite, in grey: ${plural(fields.missing, 'prediction')}.`;
  return `Largest error ${significant(fields.largest)} at ${placeName(solution, fields.worst)}.${missing}`;
}

export function solutionTable(run: Run, solution: Solution, fields: Fields): Table {
  const { columns, rows } = solution;
  const width = columns.values.length;
  return {
    name: `solution-${run.name}`,
    columns: [columns.name, rows.name, 'solution', 'prediction', 'error'],
    rows: Array.from(fields.exact, (exact, i) => [
      columns.values[i % width],
      rows.values[Math.floor(i / width)],
      exact,
      fields.predicted[i],
      fields.error[i],
    ]),
  };
}
