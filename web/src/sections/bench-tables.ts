// Rows of polyattn bench of a kind that this page does not know: every column, as it
// is.
import { h, scrollable } from '../dom';
import { csvButton } from '../download';
import type { BenchTable } from '../model/document';
import type { Cell } from '../text/csv';
import { integer, significant } from '../text/format';

function csvCell(value: unknown): Cell {
  if (typeof value === 'number' || typeof value === 'string') return value;
  return typeof value === 'boolean' ? String(value) : null;
}

function cellText(value: unknown): string {
  if (typeof value === 'number')
    return Number.isInteger(value) ? integer(value) : significant(value, 4);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  return '–';
}

export function plainTable({ title, columns, rows }: BenchTable): HTMLElement {
  const isNumber = columns.map((_, i) => rows.some((row) => typeof row[i] === 'number'));
  const kind = (i: number) => ({ class: isNumber[i] ? 'number' : '' });
  const head = columns.map((name, i) => h('th', { scope: 'col', ...kind(i) }, name));
  const body = rows.map((row) =>
    h(
      'tr',
      null,
      row.map((value, i) => h('td', kind(i), cellText(value))),
    ),
  );
  const table = h(
    'table',
    { class: 'data' },
    h('caption', { class: 'sr-only' }, title),
    h('thead', null, h('tr', null, head)),
    h('tbody', null, body),
  );
  const csv = () => ({
    name: `bench-${title}`,
    columns,
    rows: rows.map((row) => row.map(csvCell)),
  });
  return h(
    'div',
    { class: 'bench-table' },
    h('div', { class: 'section-header' }, h('h3', null, title), csvButton(`bench ${title}`, csv)),
    scrollable(`Bench, ${title}`, table),
  );
}
