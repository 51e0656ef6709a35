// Lines over the number of tokens, as the columns of a chart.
import type { ChartData, ReadoutRow, Series } from '../charts/data';

export interface LengthPoint {
  value: number;
  low: number;
  high: number;
  count: number; // measurements
  expected: number | null;
}

export interface LengthLine {
  name: string;
  points: Map<number, LengthPoint>;
}

export interface LengthPanel {
  title: string;
  lines: LengthLine[];
  time?: boolean; // against seconds of processor time, both axes linear
  axis?: string; // what the tokens are; N if nothing is said
  linear?: boolean; // values, instead of their logarithms
}

// The name of the lines that the measured ones are held against.
export const boundName = 'expected or bound';

function seriesOf({ name, points }: LengthLine, x: number[]): Series {
  const values = x.map((tokens) => points.get(tokens)?.value ?? null);
  return { activation: name, label: name, role: 'line', values };
}

// Families under one bound have the same line, which is drawn once.
function boundsOf(lines: LengthLine[], x: number[]): Series[] {
  const bounds = new Map<string, Series>();
  for (const { name, points } of lines) {
    const values = x.map((tokens) => points.get(tokens)?.expected ?? null);
    if (values.every((value) => value === null)) continue;
    const label = `${name}, expected`;
    bounds.set(JSON.stringify(values), { activation: boundName, label, role: 'thin', values });
  }
  return [...bounds.values()];
}

function readoutOf({ name, points }: LengthLine, tokens: number): ReadoutRow[] {
  const point = points.get(tokens);
  if (point === undefined) return [];
  const { value, low, high, count } = point;
  return [{ activation: name, label: name, value, spread: { low, high, count } }];
}

export function lengthData(lines: LengthLine[]): ChartData {
  const x = [...new Set(lines.flatMap((line) => [...line.points.keys()]))].sort((a, b) => a - b);
  return {
    x,
    series: [...boundsOf(lines, x), ...lines.map((line) => seriesOf(line, x))],
    bands: [],
    marked: true,
    cut: false,
    readout: (index) => lines.flatMap((line) => readoutOf(line, x[index])),
  };
}
