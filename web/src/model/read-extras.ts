// The documents of polyattn theory --json and polyattn bench --json.
import type {
  Bench,
  BenchRow,
  BenchTable,
  Claim,
  QualityCurve,
  Spread,
  Theory,
  TheoryRow,
} from './document';
import { fields, list, number, numberOrNull, text, texts, type Fields } from './values';

function readTheoryRow(value: unknown): TheoryRow {
  const row = fields(value);
  const interval = list(row.interval_99).map(number);
  return {
    compared: text(row.compared),
    subject: text(row.subject),
    tokens: number(row.N),
    tokensTo: numberOrNull(row.N_to),
    samples: number(row.samples),
    relation: text(row.relation),
    expected: number(row.expected),
    measured: number(row.measured),
    interval: interval.length === 2 ? [interval[0], interval[1]] : null,
    strain: numberOrNull(row.strain),
    ratio: numberOrNull(row.ratio),
    verdict: text(row.verdict),
  };
}

function readClaim(value: unknown): Claim {
  const claim = fields(value);
  return {
    id: text(claim.id),
    status: text(claim.status),
    statement: text(claim.statement),
    computed: text(claim.computed),
    notes: texts(claim.notes),
    holds: typeof claim.holds === 'boolean' ? claim.holds : null,
    rows: list(claim.rows).map(readTheoryRow),
  };
}

export function readTheory(value: unknown): Theory | null {
  const theory = fields(value);
  if (!Array.isArray(theory.claims)) return null;
  return {
    width: number(theory.width),
    seed: number(theory.seed),
    comparisons: number(theory.chance_comparisons),
    tail: number(theory.decision_tail),
    holds: theory.holds === true,
    claims: theory.claims.map(readClaim),
  };
}

function readSpread(row: Fields, name: string): Spread {
  return {
    median: number(row[name]),
    low: number(row[`${name}_q1`]),
    high: number(row[`${name}_q3`]),
  };
}

const unmeasured: Spread = { median: NaN, low: NaN, high: NaN };

// What was given beside the activation, the path and the length, in words.
function settingOf(row: Fields, group: string): string {
  const parts = [text(row.op), text(row.dtype), group].filter((part) => part !== '');
  // G and E are said where they differ from H and D.
  const usual: Fields = { G: row.H, E: row.D };
  for (const letter of ['B', 'H', 'G', 'D', 'E']) {
    const value = number(row[letter]);
    if (Number.isFinite(value) && value !== usual[letter]) parts.push(`${letter} ${value}`);
  }
  const causal = text(row.causal);
  if (causal !== '' && causal !== 'none') parts.push(`causal (${causal})`);
  if (row.stats === true) parts.push('with norms');
  const threads = number(row.threads);
  if (Number.isFinite(threads)) parts.push(threads === 1 ? '1 thread' : `${threads} threads`);
  return parts.join(', ');
}

function readBenchRow(row: Fields, group: string): BenchRow {
  const unit = text(row.unit) || 'ms';
  const measure = text(row.measure);
  const value = readSpread(row, 'value');
  const timeOf = (name: string) => (unit === 'ms' ? readSpread(row, name) : unmeasured);
  return {
    name: text(row.name),
    threads: number(row.threads),
    measure,
    value,
    bound: text(row.bound),
    goal: numberOrNull(row.goal),
    reached: typeof row.reached === 'boolean' ? row.reached : null,
    tokens: number(row.N),
    activation: text(row.activation),
    path: text(row.path),
    setting: settingOf(row, group),
    time: timeOf('ours'),
    baseline: text(row.baseline_name),
    baselineTime: timeOf('baseline'),
    speedup: measure === 'speedup' ? value : readSpread(row, 'speedup'),
    megabytes: unit === 'MB' ? { ours: number(row.ours), baseline: number(row.baseline) } : null,
    extraBytes: number(row.extra_bytes),
  };
}

// dense_ms, linear_ms, ...: one problem computed in several ways.
function readPaths(row: Fields): BenchRow[] {
  return ['dense', 'linear'].flatMap((path) => {
    const median = number(row[`${path}_ms`]);
    if (!Number.isFinite(median)) return [];
    const time = { ...unmeasured, median };
    return [{ ...readBenchRow(row, ''), path, time }];
  });
}

function tableOf(title: string, rows: Fields[]): BenchTable[] {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (columns.length === 0) return [];
  return [{ title, columns, rows: rows.map((row) => columns.map((column) => row[column])) }];
}

// As many points as both lists have numbers.
function readCurve(value: unknown): QualityCurve {
  const curve = fields(value);
  const accuracies = list(curve.accuracy).map(number);
  const points = list(curve.processor_seconds)
    .map((seconds, i) => ({ seconds: number(seconds), accuracy: accuracies[i] ?? NaN }))
    .filter(({ seconds, accuracy }) => Number.isFinite(seconds) && Number.isFinite(accuracy));
  return { model: text(curve.model), by: text(curve.by), target: number(curve.target), points };
}

// The document, in which `rows` are measurements and other lists are tables; or a list of
// measurements, or a single one.
export function readBench(value: unknown): Bench | null {
  const whole = fields(value);
  const groups: [string, unknown[]][] =
    'name' in whole || Array.isArray(value)
      ? [['', Array.isArray(value) ? value : [value]]]
      : Object.entries(whole).map(([name, rows]) => [name === 'rows' ? '' : name, list(rows)]);
  if (groups.every(([, rows]) => rows.length === 0)) return null;
  const bench: Bench = { rows: [], paths: [], tables: [], curves: [] };
  for (const [group, entries] of groups) {
    if (group === 'quality_curves') {
      bench.curves.push(...entries.map(readCurve));
      continue;
    }
    const all = entries.map(fields);
    const named = all.filter((row) => text(row.name) !== '');
    const others = all.filter((row) => text(row.name) === '');
    bench.rows.push(...named.map((row) => readBenchRow(row, group)));
    bench.paths.push(...others.flatMap(readPaths));
    bench.tables.push(...tableOf(group || 'other', others));
  }
  return bench;
}
