// What the cursor reads: a small table beside it.
import { fill, h } from '../dom';
import { formula } from '../math';
import { significant } from '../text/format';
import { swatch } from '../view/swatch';
import type { Styles } from '../view/palette';
import type { ReadoutRow } from './data';

const most = 14; // rows

export class Tooltip {
  readonly element = h('div', { class: 'tooltip', hidden: true, 'aria-hidden': 'true' });

  constructor(private readonly styles: Styles) {}

  show(title: string, rows: ReadoutRow[], left: number, width: number): void {
    const sorted = [...rows].sort((a, b) => b.value - a.value);
    const lines = sorted.slice(0, most).map((row) => this.line(row));
    const more =
      sorted.length > most
        ? h('tr', null, h('td', { colspan: 3 }, `and ${sorted.length - most} more`))
        : null;
    fill(
      this.element,
      h('div', { class: 'tooltip-title' }, title),
      h('table', null, h('tbody', null, lines, more)),
    );
    this.element.hidden = false;
    const beyond = left > width / 2;
    this.element.style.left = beyond ? '' : `${left + 14}px`;
    this.element.style.right = beyond ? `${width - left + 14}px` : '';
  }

  hide(): void {
    this.element.hidden = true;
  }

  private line(row: ReadoutRow): HTMLElement {
    const seed =
      row.label === row.activation
        ? null
        : h('span', { class: 'muted' }, row.label.slice(row.activation.length));
    const { spread } = row;
    const range =
      spread !== null && spread.low !== spread.high
        ? `${significant(spread.low)} to ${significant(spread.high)}`
        : '';
    return h(
      'tr',
      null,
      h('td', null, swatch(this.styles.of(row.activation)), ' ', formula(row.activation), seed),
      h('td', { class: 'number' }, significant(row.value, 4)),
      h('td', { class: 'number muted' }, range),
    );
  }
}

export function readoutText(title: string, rows: ReadoutRow[]): string {
  if (rows.length === 0) return `${title}: no values`;
  return `${title}: ${rows
    .slice(0, most)
    .map((row) => `${row.label} ${significant(row.value, 4)}`)
    .join(', ')}`;
}
