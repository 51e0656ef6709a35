// The table of a comparison: a row an activation.
import { h, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import { formula, math } from '../math';
import type { Comparison, Figure, Row, Run } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import {
  duration,
  figureDecimals,
  figureFactor,
  figureName,
  figureText,
  integer,
  megabytes,
  plural,
  signed,
  significant,
} from '../text/format';
import { splitVariant } from '../text/variant';
import type { Context } from '../view/context';
import { swatch } from '../view/swatch';
import { chosenSetting } from './grid-cells';
import { seedStrip, stripScale, type StripScale } from './strip';

function sampleText(row: Row, figure: Figure): Child {
  const { mean, deviation, count } = figure === 'loss' ? row.loss : row.figure;
  if (count === 0) return '–';
  const spread =
    count > 1 ? h('span', { class: 'spread' }, ` ± ${figureText(figure, deviation)}`) : null;
  return [figureText(figure, mean), spread];
}

function differenceText(row: Row, comparison: Comparison): Child {
  if (row.activation === comparison.baseline) return h('span', { class: 'muted' }, 'baseline');
  if (row.pairs === 0) return '–';
  const factor = figureFactor(comparison.figure);
  const text = (value: number) => signed(value * factor, figureDecimals(comparison.figure));
  const interval = Number.isNaN(row.halfWidth)
    ? 'one seed'
    : `${text(row.difference - row.halfWidth)} to ${text(row.difference + row.halfWidth)}`;
  return [text(row.difference), h('span', { class: 'under' }, interval)];
}

// A norm of 0 is one that nobody recorded.
function normText(norm: number, tokens: number): Child {
  if (norm === 0 || Number.isNaN(norm)) return '–';
  const ratio =
    tokens > 0 && Number.isFinite(norm)
      ? h('span', { class: 'under' }, `${significant(norm / Math.sqrt(tokens))} √N`)
      : null;
  return [significant(norm), ratio];
}

function runsText(row: Row): Child {
  const all = row.finished + row.diverged + row.other;
  const open =
    row.other > 0 ? h('span', { class: 'under' }, `${integer(row.other)} unfinished`) : null;
  const count = `${integer(row.diverged)} of ${integer(all)}`;
  return [row.diverged > 0 ? h('strong', null, `✕ ${count}`) : count, open];
}

function badge(row: Row): Child {
  if (row.best) return h('span', { class: 'badge best' }, '★ best');
  return row.likeBest ? h('span', { class: 'badge like' }, '≈ best') : null;
}

function finalFigure(run: Run, figure: Figure): number {
  const values = {
    accuracy: run.accuracy,
    bits_per_byte: run.bitsPerByte,
    relative_l2: run.relativeL2,
    loss: run.loss,
  };
  return values[figure] ?? NaN;
}

function seedValues(context: Context, comparison: Comparison, activation: string): number[] {
  return context.report.runs
    .filter(
      (run) =>
        run.task === comparison.task && run.activation === activation && run.state === 'finished',
    )
    .map((run) => finalFigure(run, comparison.figure))
    .filter(Number.isFinite);
}

function rowElement(
  context: Context,
  comparison: Comparison,
  row: Row,
  scale: StripScale,
): HTMLElement {
  const { figure, tokens } = comparison;
  const values = seedValues(context, comparison, row.activation);
  const [activation, variant] = splitVariant(row.activation);
  const setting = chosenSetting(context.report.grids, comparison.task, row.activation);
  const name = h(
    'th',
    { scope: 'row' },
    h('span', { class: 'name' }, swatch(context.styles.of(row.activation)), formula(activation)),
    badge(row),
    variant === '' ? null : h('span', { class: 'under' }, variant),
    setting === '' ? null : h('span', { class: 'under' }, setting),
  );
  const cells: Child[] = [
    h('span', { class: 'figure' }, sampleText(row, figure)),
    seedStrip(values, scale, context.styles.of(row.activation).colour, figure),
    differenceText(row, comparison),
    ...(figure === 'loss' ? [] : [sampleText(row, 'loss')]),
    row.finished > 0 ? duration(row.trainSeconds) : '–',
    megabytes(row.peakMb),
    normText(row.maxWeightNorm, tokens),
    normText(row.maxJacobianNorm, tokens),
    runsText(row),
  ];
  return h(
    'tr',
    { class: row.best ? 'is-best' : row.likeBest ? 'is-like' : '' },
    name,
    cells.map((cell) => h('td', { class: 'number' }, cell)),
  );
}

function headings(comparison: Comparison): Child[] {
  const { figure, baseline } = comparison;
  const unit = figure === 'accuracy' ? 'accuracy, %' : figureName[figure];
  return [
    'activation',
    unit,
    'seeds',
    [
      figure === 'accuracy' ? 'points against ' : 'against ',
      baseline === '' ? 'baseline' : formula(baseline),
    ],
    ...(figure === 'loss' ? [] : ['loss']),
    'time',
    'memory',
    h('span', { class: 'whole' }, 'max ', math('\\lVert A\\rVert')),
    h('span', { class: 'whole' }, 'max ', math("\\lVert A'\\rVert")),
    'diverged',
  ];
}

// What the columns mean; below the last table only.
function explanation(): Child[] {
  return [
    '± is the standard deviation over the seeds. Differences are taken seed by seed. ★ has the best mean; ≈ marks those without a significant difference to it: the best activation is among ★ and ≈ with 95 % confidence. Time is that of training, memory the largest. ',
    math('\\lVert A\\rVert'),
    ' and ',
    math("\\lVert A'\\rVert"),
    ' are the largest Frobenius norms of an attention matrix and of its Jacobian over layers, heads and recorded steps. Softmax keeps the first below √N and the second below √N/2, whatever its scores.',
  ];
}

function circumstances(comparison: Comparison): string {
  const tests =
    comparison.testCount > 0
      ? ` on ${plural(comparison.testCount, `${comparison.split} example`)}`
      : '';
  const root =
    comparison.tokens > 0
      ? `; N = ${integer(comparison.tokens)} tokens, √N = ${significant(Math.sqrt(comparison.tokens))}`
      : '';
  const intervals =
    comparison.intervals === '' ? '' : `Below differences: ${comparison.intervals}. `;
  return `After the last step${tests}${root}. ${intervals}`;
}

// Best first; those without a figure last.
function ranked({ rows, figure }: Comparison): Row[] {
  const sign = figure === 'accuracy' ? -1 : 1;
  const key = (row: Row) =>
    row.figure.count > 0 && Number.isFinite(row.figure.mean) ? sign * row.figure.mean : Infinity;
  return [...rows].sort((a, b) => (key(a) === key(b) ? 0 : key(a) - key(b)));
}

function tableCsv({ task, figure, tokens, rows }: Comparison): Table {
  return tableOf(`comparison-${task}`, rows, [
    ['activation', (row) => row.activation],
    ['best', (row) => String(row.best)],
    ['like_best', (row) => String(row.likeBest)],
    ['finished', (row) => row.finished],
    ['diverged', (row) => row.diverged],
    ['other', (row) => row.other],
    [`${figure}_mean`, (row) => row.figure.mean],
    [`${figure}_deviation`, (row) => row.figure.deviation],
    ['seeds', (row) => row.figure.count],
    ['loss_mean', (row) => row.loss.mean],
    ['loss_deviation', (row) => row.loss.deviation],
    ['pairs', (row) => row.pairs],
    ['difference', (row) => row.difference],
    ['half_width_95', (row) => row.halfWidth],
    ['train_seconds', (row) => row.trainSeconds],
    ['peak_mb', (row) => row.peakMb],
    ['max_weight_norm', (row) => row.maxWeightNorm],
    ['max_jacobian_norm', (row) => row.maxJacobianNorm],
    ['tokens', () => tokens],
  ]);
}

export function resultTable(
  context: Context,
  comparison: Comparison,
  isLast: boolean,
): HTMLElement {
  const rows = ranked(comparison);
  const all = rows.map((row) => seedValues(context, comparison, row.activation));
  const scale = stripScale(all.flat());
  const head = h(
    'thead',
    null,
    h(
      'tr',
      null,
      headings(comparison).map((text) => h('th', { scope: 'col' }, text)),
    ),
  );
  const body = h(
    'tbody',
    null,
    rows.map((row) => rowElement(context, comparison, row, scale)),
  );
  const id = `caption-${context.report.comparisons.findIndex(({ task }) => task === comparison.task) + 1}`;
  const table = h(
    'table',
    { class: 'result', 'aria-describedby': id },
    h('caption', { class: 'sr-only' }, `Activations compared on ${comparison.task}`),
    head,
    body,
  );
  return h(
    'div',
    { class: 'table-block' },
    scrollable(`Activations compared on ${comparison.task}`, table),
    h(
      'div',
      { class: 'table-foot' },
      h('p', { class: 'notes', id }, circumstances(comparison), isLast ? explanation() : null),
      csvButton(`the table of ${comparison.task}`, () => tableCsv(comparison)),
    ),
  );
}
