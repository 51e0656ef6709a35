// What a chart does not show, said below it.
import { integer, plural } from '../text/format';
import type { ChartData, Entry } from './data';
import type { Reference } from './overlay';
import type { SummaryRow } from './summary';

export interface NoteSource {
  entries: Entry[];
  rows: SummaryRow[];
  data: ChartData;
  log: boolean;
  references: Reference[];
}

function thinningNote(entries: Entry[]): string | null {
  const thinned = entries.filter(({ curve }) => (curve.points ?? 0) > curve.x.length);
  if (thinned.length === 0) return null;
  const { points, x } = thinned[0].curve;
  const which = thinned.length === entries.length ? 'each run' : plural(thinned.length, 'run');
  return `The records of ${which} are thinned (of ${integer(points ?? 0)}, ${integer(x.length)} are in this file): each point is a record, and the extremes of each stretch are kept.`;
}

function hiddenByLog({ data }: NoteSource): number {
  return data.series.reduce(
    (sum, series) =>
      sum +
      (series.role === 'edge'
        ? 0
        : series.values.filter((value) => value !== null && value <= 0).length),
    0,
  );
}

function divergedNote(entries: Entry[]): string | null {
  const diverged = entries.filter(({ run }) => run.state === 'diverged').length;
  if (diverged === 0) return null;
  const which =
    diverged === 1
      ? 'A cross is the last finite record of a run that diverged'
      : `Crosses are the last finite records of ${integer(diverged)} runs that diverged`;
  return `${which}; behind it the mean is that of the runs that go on.`;
}

export function chartNotes(source: NoteSource): string[] {
  const { entries, rows, data, log, references } = source;
  const notes: (string | null)[] = [];
  if (references.length > 0)
    notes.push(`Dotted: ${references.map((reference) => reference.label).join('; ')}.`);
  notes.push(thinningNote(entries), divergedNote(entries));
  const notFinite = rows.reduce((sum, row) => sum + row.notFinite, 0);
  if (notFinite > 0) notes.push(`${plural(notFinite, 'record')} not finite, so not drawn.`);
  const lost = log ? hiddenByLog(source) : 0;
  if (lost > 0)
    notes.push(`${plural(lost, 'point')} at or below zero, which a logarithmic axis cannot show.`);
  if (data.cut) notes.push('Drawn in 1000 stretches of the visible range.');
  return notes.filter((note) => note !== null);
}
