// Comparisons of a claim as lines over the number of tokens.
import type { Claim, TheoryRow } from '../model/document';
import type { LengthLine, LengthPanel, LengthPoint } from './length-lines';

interface Panel {
  title: string;
  rows: TheoryRow[];
}

function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

// Upper bounds are what one wants to see first.
const order = ['at most', '', 'at least', 'equal'];

// What can be drawn against N. Comparisons of several subjects are a chart each;
// those of one subject, such as families of matrices under a bound, share a chart.
function groupsOf(claim: Claim): Panel[] {
  const drawable = claim.rows.filter(
    (row) =>
      row.tokensTo === null && row.tokens > 0 && row.measured > 0 && Number.isFinite(row.measured),
  );
  const panels: Panel[] = [];
  const singles = new Map<string, TheoryRow[]>();
  for (const [compared, rows] of groupBy(drawable, (row) => row.compared)) {
    if (new Set(rows.map((row) => row.tokens)).size < 2) continue;
    if (new Set(rows.map((row) => row.subject)).size > 1) panels.push({ title: compared, rows });
    else singles.set(rows[0].relation, [...(singles.get(rows[0].relation) ?? []), ...rows]);
  }
  const shared = [...singles].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  return [
    ...shared.map(([relation, rows]) => ({
      title: relation === '' ? 'observed' : `${relation} the bound`,
      rows,
    })),
    ...panels,
  ];
}

// Beside the measured value its interval, or else what was expected.
function pointOf({ measured, expected, interval, samples }: TheoryRow): LengthPoint {
  const [low, high] = interval ?? [expected, expected];
  return { value: measured, low, high, count: samples, expected };
}

function linesOf({ rows }: Panel): LengthLine[] {
  const several = new Set(rows.map((row) => row.compared)).size > 1;
  const groups = groupBy(rows, (row) => (several ? row.compared : row.subject));
  return [...groups].map(([name, members]) => ({
    name,
    points: new Map(members.map((row) => [row.tokens, pointOf(row)])),
  }));
}

export function panelsOf(claim: Claim): LengthPanel[] {
  return groupsOf(claim).map((panel) => ({ title: panel.title, lines: linesOf(panel) }));
}
