// Comparisons name tasks and activations a little differently from runs: two
// spellings of a formula are one activation, under the first spelling, and a text
// that is no formula or no known task stands in quotes. Here both get the same
// names, so that the page can put runs and rows together.
import { formulaTex } from '../text/formula';
import type { Comparison, Run } from './document';

function unquoted(name: string): string {
  if (!name.startsWith('"')) return name;
  try {
    const text: unknown = JSON.parse(name);
    return typeof text === 'string' ? text : name;
  } catch {
    return name;
  }
}

// Quoted texts are cut at some length; what is left must begin a known name.
function knownName(name: string, known: ReadonlySet<string>): string {
  if (known.has(name)) return name;
  const text = unquoted(name);
  if (known.has(text)) return text;
  if (!text.endsWith('...')) return name;
  const start = text.slice(0, -3);
  return [...known].find((candidate) => candidate.startsWith(start)) ?? name;
}

function alignRows(comparison: Comparison, runs: Run[]): void {
  const known = new Set(runs.map((run) => run.activation));
  const byFormula = new Map<string, string>();
  for (const row of comparison.rows) {
    row.activation = knownName(row.activation, known);
    const tex = formulaTex(row.activation);
    if (tex !== null) byFormula.set(tex, row.activation);
  }
  comparison.baseline = knownName(comparison.baseline, known);
  const rows = new Set(comparison.rows.map((row) => row.activation));
  for (const run of runs) {
    const tex = rows.has(run.activation) ? null : formulaTex(run.activation);
    if (tex !== null) run.activation = byFormula.get(tex) ?? run.activation;
  }
}

export function alignNames(comparisons: Comparison[], runs: Run[]): void {
  const tasks = new Set(runs.map((run) => run.task));
  for (const comparison of comparisons) {
    comparison.task = knownName(comparison.task, tasks);
    alignRows(
      comparison,
      runs.filter((run) => run.task === comparison.task),
    );
  }
}
