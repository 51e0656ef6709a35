// The solution of an equation: the numbers stay in base64 until someone looks at
// them.
import type { CodedField, Solution, SolutionAxis } from './document';
import { decodeBytes } from './read-maps';
import { fields, number, numbers, text } from './values';

// More than C++ writes.
const mostValues = 1024;
const notFinite = 0xffff;

function readAxis(value: unknown): SolutionAxis | null {
  const axis = fields(value);
  const values = numbers(axis.values);
  const rising = values.every((x, i) => Number.isFinite(x) && (i === 0 || x > values[i - 1]));
  if (!rising || values.length < 2 || values.length > mostValues) return null;
  return { name: text(axis.name), values };
}

function readField(value: unknown): CodedField | null {
  const field = fields(value);
  const [low, step] = [number(field.low), number(field.step)];
  if (!Number.isFinite(low) || !(step >= 0) || step === Infinity) return null;
  return { low, step, values: text(field.values) };
}

// Null if there is none, or it cannot be shown.
export function readSolution(value: unknown): Solution | null {
  if (value === null || value === undefined) return null;
  const solution = fields(value);
  const columns = readAxis(solution.columns);
  const rows = readAxis(solution.rows);
  const exact = readField(solution.exact);
  const error = readField(solution.error);
  if (columns === null || rows === null || exact === null || error === null) return null;
  return { columns, rows, exact, error };
}

// NaN where a number was not finite; null if the data is damaged.
export function decodeField({ low, step, values }: CodedField, count: number): Float64Array | null {
  const bytes = decodeBytes(values, 2 * count);
  if (bytes === null) return null;
  const field = new Float64Array(count);
  for (let i = 0; i < count; ++i) {
    const code = bytes[2 * i] + 256 * bytes[2 * i + 1];
    field[i] = code === notFinite ? NaN : low + step * code;
  }
  return field;
}
