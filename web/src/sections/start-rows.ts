// How heads started: what the table, the sentence and the CSV say.
import type { HeadStart, Run, Start } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import { integer, significant } from '../text/format';
import type { View } from '../view/store';

export type StartedRun = Run & { start: Start };

export function startedRuns(runs: readonly Run[]): StartedRun[] {
  return runs.filter((run): run is StartedRun => run.start !== null);
}

// Runs of an activation that were to start at the same factor, or one of them.
export interface StartGroup {
  activation: string;
  factor: number;
  seeds: number[];
  layers: HeadStart[][]; // means over the seeds
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function meanHead(heads: HeadStart[]): HeadStart {
  const of = (key: keyof HeadStart) => mean(heads.map((head) => head[key]));
  return { gain: of('gain'), before: of('before'), after: of('after'), softmax: of('softmax') };
}

// Entry by entry, of those that have one there.
function transposed<T>(lists: T[][]): T[][] {
  const length = lists.reduce((most, list) => Math.max(most, list.length), 0);
  return Array.from({ length }, (_, i) =>
    lists.flatMap((list) => (i < list.length ? [list[i]] : [])),
  );
}

function groupOf(runs: StartedRun[]): StartGroup {
  const [{ activation, start }] = runs;
  return {
    activation,
    factor: start.factor,
    seeds: runs.map((run) => run.seed),
    layers: transposed(runs.map((run) => run.start.layers)).map((layers) =>
      transposed(layers).map(meanHead),
    ),
  };
}

export function startGroups(runs: readonly StartedRun[], seeds: View['seeds']): StartGroup[] {
  const groups = new Map<string, StartedRun[]>();
  runs.forEach((run, i) => {
    const key = JSON.stringify([run.activation, run.start.factor, seeds === 'lines' ? i : '']);
    groups.set(key, [...(groups.get(key) ?? []), run]);
  });
  return [...groups.values()].map(groupOf);
}

// 0.306 to 0.396, or one number if there is one, to three digits.
export function rangeText(values: readonly number[]): string {
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return '–';
  const low = significant(known.reduce((a, b) => Math.min(a, b)));
  const high = significant(known.reduce((a, b) => Math.max(a, b)));
  return low === high ? low : `${low} to ${high}`;
}

// What was done, in a sentence or two.
export function startSentence(runs: readonly StartedRun[]): string {
  const heads = runs.flatMap((run) => run.start.layers.flat());
  const kept = heads.filter((head) => head.gain === 1).length;
  const ratio = rangeText(heads.map((head) => head.after / head.softmax));
  const goal = `${ratio === '1' ? '' : `${ratio} times `}softmax’s on the same scores`;
  if (kept === heads.length) return `No scores were scaled: ‖A‖ starts at ${goal}.`;
  const gains = rangeText(heads.map((head) => head.gain));
  const before = rangeText(heads.map((head) => head.before));
  const others =
    kept === 0
      ? ''
      : ` ${integer(kept)} of ${integer(heads.length)} heads kept the scores that were drawn.`;
  return `Scores were scaled by ${gains}, so that ‖A‖ starts at ${goal}; as drawn it would have started at ${before}.${others}`;
}

export function startTable(runs: readonly StartedRun[]): Table {
  const entries = runs.flatMap((run) =>
    run.start.layers.flatMap((heads, layer) => heads.map((head, i) => ({ run, layer, i, head }))),
  );
  return tableOf('how-it-started', entries, [
    ['run', ({ run }) => run.name],
    ['task', ({ run }) => run.task],
    ['activation', ({ run }) => run.activation],
    ['seed', ({ run }) => run.seed],
    ['factor', ({ run }) => run.start.factor],
    ['layer', ({ layer }) => layer + 1],
    ['head', ({ i }) => i + 1],
    ['weight_before', ({ head }) => head.before],
    ['weight', ({ head }) => head.after],
    ['softmax', ({ head }) => head.softmax],
    ['gain', ({ head }) => head.gain],
  ]);
}
