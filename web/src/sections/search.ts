// What was searched on validation data, and what was chosen.
import { fill, h, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import { formula } from '../math';
import type { Figure, Grid } from '../model/document';
import { figureName, figureText, plural, significant } from '../text/format';
import type { Context, Section } from '../view/context';
import { swatch } from '../view/swatch';
import { gridCsv, heatRows, type HeatCell } from './grid-cells';

function cellElement(cell: HeatCell | null, figure: Figure): HTMLElement {
  if (cell === null) return h('td', { class: 'number muted' }, '–');
  const { mean, deviation, count } = cell.figure;
  const spread =
    count > 1 ? h('span', { class: 'spread' }, ` ± ${figureText(figure, deviation)}`) : null;
  const value: Child =
    count > 0 ? [figureText(figure, mean), spread] : h('span', { class: 'muted' }, '✕ diverged');
  return h(
    'td',
    { class: cell.chosen ? 'number heat is-chosen' : 'number heat', style: `--heat: ${cell.heat}` },
    value,
    cell.chosen ? h('span', { class: 'badge best' }, '★ chosen') : null,
  );
}

function gridTable(context: Context, grid: Grid): HTMLElement {
  const label = `Search on ${grid.task}`;
  const names = grid.rows.map(({ activation }) =>
    h(
      'th',
      { scope: 'col', class: 'number' },
      h('span', { class: 'name' }, swatch(context.styles.of(activation)), formula(activation)),
    ),
  );
  const head = h(
    'tr',
    null,
    grid.keys.map((key) => h('th', { scope: 'col' }, key)),
    names,
  );
  const body = heatRows(grid).map(({ values, cells }) =>
    h(
      'tr',
      null,
      grid.keys.map((_, i) => h('th', { scope: 'row' }, values[i] ?? '')),
      cells.map((cell) => cellElement(cell, grid.figure)),
    ),
  );
  return scrollable(
    label,
    h(
      'table',
      { class: 'data search' },
      h('caption', { class: 'sr-only' }, label),
      h('thead', null, head),
      h('tbody', null, body),
    ),
  );
}

function gridBlock(context: Context, grid: Grid): HTMLElement {
  const unit = grid.figure === 'accuracy' ? 'accuracy, %' : figureName[grid.figure];
  const words = `Validation ${unit}, after the last step, on ${significant(100 * grid.validation)} % of the training data, which was held out; ${plural(grid.seeds, 'seed')}. The darker, the better for that activation. What is chosen was trained again, on all training data and with other seeds, for the result above.`;
  return h(
    'div',
    { class: 'table-block' },
    gridTable(context, grid),
    h(
      'div',
      { class: 'table-foot' },
      h('p', { class: 'notes' }, words),
      csvButton(`the search on ${grid.task}`, () => gridCsv(grid)),
    ),
  );
}

export function searchSection(context: Context): Section {
  const blocks = h('div');
  const element = h(
    'section',
    { id: 'search', 'aria-labelledby': 'search-title' },
    h('h2', { id: 'search-title' }, 'Search'),
    blocks,
  );
  const update = () =>
    fill(
      blocks,
      context.report.grids.map((grid) => gridBlock(context, grid)),
    );
  const present = () => context.report.grids.length > 0;
  return { id: 'search', title: 'Search', element, present, update };
}
