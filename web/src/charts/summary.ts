// A chart in words and as a small table, for those who cannot see it and for
// those who want the numbers.
import { significant } from '../text/format';
import { byActivation, type Entry } from './data';

export interface SummaryRow {
  activation: string;
  runs: number;
  first: number; // means over the runs
  last: number;
  smallest: number;
  largest: number;
  notFinite: number; // records
}

function mean(values: number[]): number {
  return values.length === 0 ? NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function summaryRow(activation: string, members: Entry[]): SummaryRow {
  const first: number[] = [];
  const last: number[] = [];
  let smallest = Infinity;
  let largest = -Infinity;
  let notFinite = 0;
  for (const { curve } of members) {
    const finite = curve.y.filter(Number.isFinite);
    notFinite += curve.y.length - finite.length;
    if (finite.length === 0) continue;
    first.push(finite[0]);
    last.push(finite[finite.length - 1]);
    for (const value of finite) {
      smallest = Math.min(smallest, value);
      largest = Math.max(largest, value);
    }
  }
  const any = first.length > 0;
  return {
    activation,
    runs: members.length,
    first: mean(first),
    last: mean(last),
    smallest: any ? smallest : NaN,
    largest: any ? largest : NaN,
    notFinite,
  };
}

export function summaryRows(entries: Entry[]): SummaryRow[] {
  return [...byActivation(entries)].map(([activation, members]) => summaryRow(activation, members));
}

const spoken = 8;

export function summaryText(title: string, xName: string, rows: SummaryRow[]): string {
  if (rows.length === 0) return `${title}: nothing to show.`;
  const parts = rows
    .slice(0, spoken)
    .map(
      (row) =>
        `${row.activation} from ${significant(row.first)} to ${significant(row.last)}, largest ${significant(row.largest)}`,
    );
  const more = rows.length > spoken ? `; and ${rows.length - spoken} more` : '';
  return `Line chart: ${title}, against ${xName}. ${parts.join('; ')}${more}.`;
}

// The same of lines that are no runs.
export function summaryTextOf(title: string, lines: [string, number[]][]): string {
  const parts = lines
    .slice(0, spoken)
    .map(
      ([name, values]) =>
        `${name} from ${significant(values[0])} to ${significant(values[values.length - 1])}`,
    );
  const more = lines.length > spoken ? `; and ${lines.length - spoken} more` : '';
  return `Line chart: ${title}, against the number of tokens, logarithmic axes. ${parts.join('; ')}${more}.`;
}
