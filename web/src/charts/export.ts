// The data of a chart as CSV, and its summary as a table.
import { h, scrollable } from '../dom';
import { secondsAt } from '../curves/metrics';
import { formula } from '../math';
import type { Cell, Table } from '../text/csv';
import { integer, significant } from '../text/format';
import type { Entry } from './data';
import type { SummaryRow } from './summary';

function rowsOf({ run, curve }: Entry, axis: 'step' | 'time'): Cell[][] {
  return Array.from(curve.x, (x, i) => {
    const position = axis === 'time' ? [x] : [x, secondsAt(run, x)];
    return [run.name, run.task, run.activation, run.seed, ...position, curve.y[i]];
  });
}

// One line a record, of the runs that are shown.
export function chartTable(
  spec: { id: string; title: string },
  entries: Entry[],
  axis: 'step' | 'time',
): Table {
  const position = axis === 'time' ? ['train_seconds'] : ['step', 'train_seconds'];
  return {
    name: spec.id,
    columns: ['run', 'task', 'activation', 'seed', ...position, spec.title],
    rows: entries.flatMap((entry) => rowsOf(entry, axis)),
  };
}

export function numbersTable(title: string, rows: SummaryRow[]): HTMLElement {
  const heads = ['activation', 'runs', 'first', 'last', 'smallest', 'largest', 'not finite'];
  const body = rows.map((row) => {
    const numbers = [
      integer(row.runs),
      significant(row.first),
      significant(row.last),
      significant(row.smallest),
      significant(row.largest),
      integer(row.notFinite),
    ];
    return h(
      'tr',
      null,
      h('th', { scope: 'row' }, formula(row.activation)),
      numbers.map((value) => h('td', { class: 'number' }, value)),
    );
  });
  const table = h(
    'table',
    { class: 'data' },
    h('caption', null, `${title}; first and last are means over the runs`),
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        heads.map((head) => h('th', { scope: 'col' }, head)),
      ),
    ),
    h('tbody', null, body),
  );
  return scrollable(`Numbers: ${title}`, table);
}
