// Attention maps in words and numbers.
import type { Run } from '../model/document';
import type { Table } from '../text/csv';
import { significant } from '../text/format';
import { keyName, queryName, type Frame } from './frame';
import type { Matrix } from './matrix';

export interface Described {
  run: Run;
  frame: Frame;
  matrix: Matrix;
  name: string; // input, layer and head
}

// What stands at a place of the matrix, or what a row holds.
export function reading({ matrix, frame }: Described, row: number, column: number | null): string {
  const { rows, columns, weights } = matrix;
  if (row >= rows || (column ?? 0) >= columns) return 'not in this map';
  const query = queryName(frame, row);
  if (column !== null) {
    const weight = significant(weights[row * columns + column]);
    return `${query} → ${keyName(frame, column)}: weight ${weight}`;
  }
  const own = weights.subarray(row * columns, (row + 1) * columns);
  const sum = own.reduce((total, weight) => total + weight, 0);
  const negative = own.filter((weight) => weight < 0).length;
  return `${query}: weights sum to about ${significant(sum)}, ${negative} of ${columns} below zero`;
}

export function description({ matrix, name, run }: Described): string {
  const low = matrix.weights.reduce((least, weight) => Math.min(least, weight), Infinity);
  const high = matrix.weights.reduce((most, weight) => Math.max(most, weight), -Infinity);
  const size = `${matrix.rows} queries by ${matrix.columns} keys`;
  const range = `weights from ${significant(low)} to ${significant(high)}`;
  return `Attention map of ${run.activation}, ${name}: ${size}, ${range}. Arrow keys read single weights.`;
}

export function mapTable({ matrix, frame, name, run }: Described): Table {
  const { rows, columns, weights } = matrix;
  const keys = Array.from({ length: columns }, (_, i) => keyName(frame, i));
  return {
    name: `attention-${run.name}-${name}`,
    columns: ['query', ...keys],
    rows: Array.from({ length: rows }, (_, row) => [
      queryName(frame, row),
      ...weights.subarray(row * columns, (row + 1) * columns),
    ]),
  };
}
