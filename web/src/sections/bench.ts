// What polyattn bench measured: ratios with their quartiles.
import { h, refill, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import type { Bench, BenchRow, Spread } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import { fixed, integer, plural, significant } from '../text/format';
import type { Context, Section } from '../view/context';
import { dotPlot, rangeOf, shown } from './bench-drawing';
import { benchPanels, qualityPanels } from './bench-lines';
import { plainTable } from './bench-tables';
import { LengthChart } from './length-chart';
import type { LengthPanel } from './length-lines';

function unitOf(row: BenchRow): string {
  const baseline = row.baseline || 'its baseline';
  if (row.measure === 'sgemm_ratio') return '× the speed of sgemm';
  if (row.measure === 'time_ratio') return `× the time of ${baseline}`;
  if (row.measure === 'megabytes') return 'MB beside inputs and outputs';
  if (row.measure !== 'speedup') return row.measure;
  return row.megabytes === null
    ? `× the speed of ${baseline}`
    : `times less memory than ${baseline}`;
}

function spreadText(row: BenchRow): Child {
  const { low, high } = row.value;
  const quartiles = Number.isFinite(low)
    ? h('span', { class: 'spread' }, ` (${shown(row, low)} to ${shown(row, high)})`)
    : null;
  return [shown(row, row.value.median), quartiles];
}

function goalText(row: BenchRow): string {
  return row.goal === null ? '' : `${row.bound === 'at most' ? '≤' : '≥'} ${shown(row, row.goal)}`;
}

function reachedText(row: BenchRow): Child {
  if (row.reached === null) return '';
  return row.reached ? '✓ yes' : h('strong', null, '✕ no');
}

function speedupText({ median }: Spread): string {
  return Number.isFinite(median) ? `${fixed(median, 2)}×` : '–';
}

// A speed-up that is not the value itself: over the materialised matrix.
function isBeside(row: BenchRow): boolean {
  return row.measure !== 'speedup' && Number.isFinite(row.speedup.median);
}

function rowElement(row: BenchRow, range: [number, number], kernels: boolean): HTMLElement {
  const cells: [Child, boolean][] = [
    [integer(row.threads), true],
    [spreadText(row), true],
    [unitOf(row), false],
    [dotPlot(row, range), false],
    [goalText(row), true],
    [reachedText(row), false],
    [Number.isFinite(row.time.median) ? significant(row.time.median) : '–', true],
  ];
  if (kernels) cells.push([isBeside(row) ? speedupText(row.speedup) : '–', true]);
  return h(
    'tr',
    null,
    h('th', { scope: 'row' }, row.name),
    cells.map(([cell, isNumber]) => h('td', { class: isNumber ? 'number' : '' }, cell)),
  );
}

function csvTable(rows: BenchRow[]): Table {
  return tableOf('bench', rows, [
    ['name', (row) => row.name],
    ['threads', (row) => row.threads],
    ['measure', (row) => row.measure],
    ['value', (row) => row.value.median],
    ['q1', (row) => row.value.low],
    ['q3', (row) => row.value.high],
    ['bound', (row) => row.bound],
    ['goal', (row) => row.goal],
    ['reached', (row) => (row.reached === null ? null : String(row.reached))],
    ['activation', (row) => row.activation],
    ['path', (row) => row.path],
    ['N', (row) => row.tokens],
    ['ms', (row) => row.time.median],
    ['ms_q1', (row) => row.time.low],
    ['ms_q3', (row) => row.time.high],
    ['baseline', (row) => row.baseline],
    ['baseline_ms', (row) => row.baselineTime.median],
    ['speedup', (row) => row.speedup.median],
    ['speedup_q1', (row) => row.speedup.low],
    ['speedup_q3', (row) => row.speedup.high],
    ['ours_mb', (row) => row.megabytes?.ours ?? null],
    ['baseline_mb', (row) => row.megabytes?.baseline ?? null],
    ['extra_bytes', (row) => row.extraBytes],
  ]);
}

function summary(rows: BenchRow[]): string {
  const goals = rows.filter((row) => row.reached !== null);
  const missed = goals.filter((row) => row.reached === false).length;
  const verdict =
    goals.length === 0
      ? ''
      : missed === 0
        ? ` ${goals.length === 1 ? 'The goal is' : `All ${goals.length} goals are`} reached.`
        : ` ${missed} of ${goals.length} goals are missed.`;
  return `${plural(rows.length, 'measurement')}: medians of rounds in which ours and the baseline take turns, with quartiles.${verdict} In the drawing the thin line is 1, the short one the goal.`;
}

function lines(context: Context, title: string, panels: LengthPanel[]): Child {
  if (panels.length === 0) return null;
  return h(
    'article',
    { class: 'claim', 'aria-label': title },
    h('h3', null, title),
    new LengthChart(context.theme, panels, 'Shown').element,
  );
}

function lengthCharts(context: Context, { rows, paths, curves }: Bench): Child[] {
  return [
    lines(context, 'Time to quality', qualityPanels(curves)),
    lines(context, 'Against the number of tokens', benchPanels([...rows, ...paths])),
  ];
}

export function benchSection(context: Context): Section {
  const element = h('section', { id: 'speed', 'aria-labelledby': 'speed-title' });
  let drawn = '';
  const update = () => {
    const bench = context.report.bench ?? { rows: [], paths: [], tables: [], curves: [] };
    if (JSON.stringify(bench) === drawn) return;
    drawn = JSON.stringify(bench);
    const { rows } = bench;
    const kernels = rows.some(isBeside);
    const range = rangeOf(rows);
    const drawing = `${fixed(range[0], 2)} to ${fixed(range[1], 2)}, logarithmic`;
    const headings = [
      'case',
      'threads',
      'value',
      'unit',
      drawing,
      'goal',
      'reached',
      'ms',
      ...(kernels ? ['against materialised'] : []),
    ];
    const numeric = ['threads', 'value', 'goal', 'ms', 'against materialised'];
    const head = h(
      'thead',
      null,
      h(
        'tr',
        null,
        headings.map((text) =>
          h('th', { scope: 'col', class: numeric.includes(text) ? 'number' : '' }, text),
        ),
      ),
    );
    const table = h(
      'table',
      { class: 'data' },
      h('caption', { class: 'sr-only' }, 'Speed'),
      head,
      h(
        'tbody',
        null,
        rows.map((row) => rowElement(row, range, kernels)),
      ),
    );
    refill(
      element,
      h(
        'div',
        { class: 'section-header' },
        h('h2', { id: 'speed-title' }, 'Speed'),
        csvButton('speed', () => csvTable(rows)),
      ),
      h('p', { class: 'lead' }, summary(rows)),
      lengthCharts(context, bench),
      rows.length === 0 ? null : scrollable('Measurements of speed', table),
      bench.tables.map(plainTable),
    );
  };
  return {
    id: 'speed',
    title: 'Speed',
    element,
    present: () => context.report.bench !== null,
    update,
  };
}
