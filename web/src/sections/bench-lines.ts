// Measurements of polyattn bench that differ in their length alone, as lines over
// the number of tokens: a panel for the time and one for the memory of a setting. And
// accuracy against processor time.
import type { BenchRow, QualityCurve } from '../model/document';
import type { LengthLine, LengthPanel, LengthPoint } from './length-lines';

type Pick = (row: BenchRow) => LengthPoint | null;

function pointOf(value: number, low = value, high = value): LengthPoint | null {
  if (!(value > 0) || !Number.isFinite(value)) return null;
  return {
    value,
    low: low > 0 ? low : value,
    high: high > 0 ? high : value,
    count: 1,
    expected: null,
  };
}

const ourTime: Pick = ({ time }) => pointOf(time.median, time.low, time.high);
const baselineTime: Pick = ({ baselineTime: time }) => pointOf(time.median, time.low, time.high);
const memory: Pick = ({ extraBytes }) => pointOf(extraBytes / 1e6);

function lineOf(name: string, rows: BenchRow[], pick: Pick): LengthLine {
  const points = new Map<number, LengthPoint>();
  for (const row of rows) {
    const point = pick(row);
    if (point !== null) points.set(row.tokens, point);
  }
  return { name, points };
}

function groupBy(rows: BenchRow[], key: (row: BenchRow) => string): [string, BenchRow[]][] {
  const groups = new Map<string, BenchRow[]>();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return [...groups];
}

// A line of a single point says nothing about how something grows.
function panelOf(title: string, lines: LengthLine[]): LengthPanel[] {
  const long = lines.filter((line) => line.points.size > 1);
  return long.length === 0 ? [] : [{ title, lines: long }];
}

function nameOf(row: BenchRow): string {
  return row.path === '' ? row.activation : `${row.activation}, ${row.path}`;
}

export function benchPanels(rows: BenchRow[]): LengthPanel[] {
  const usable = rows.filter((row) => row.tokens > 0 && row.activation !== '');
  return groupBy(usable, (row) => row.setting).flatMap(([setting, members]) => {
    const paths = groupBy(members, nameOf);
    const times = paths.flatMap(([name, group]) => [
      lineOf(name, group, ourTime),
      lineOf(`${name}, ${group[0].baseline}`, group, baselineTime),
    ]);
    const memories = paths.map(([name, group]) => lineOf(name, group, memory));
    return [
      ...panelOf(`milliseconds: ${setting}`, times),
      ...panelOf(`MB beside inputs and outputs: ${setting}`, memories),
    ];
  });
}

function qualityLine({ model, by, target, points }: QualityCurve): LengthLine {
  const percent = (share: number) => 100 * share;
  return {
    name: `${model}, ${by}`,
    points: new Map(
      points.map(({ seconds, accuracy }) => {
        const value = percent(accuracy);
        return [seconds, { value, low: value, high: value, count: 1, expected: percent(target) }];
      }),
    ),
  };
}

export function qualityPanels(curves: QualityCurve[]): LengthPanel[] {
  const panels = panelOf('accuracy on validation data, %', curves.map(qualityLine));
  return panels.map((panel) => ({ ...panel, time: true }));
}
