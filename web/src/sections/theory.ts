// What polyattn theory found: a card a claim.
import { fill, h, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import type { Claim, Theory, TheoryRow } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import { integer, plural, significant } from '../text/format';
import { pretty } from '../text/pretty';
import type { Context, Section } from '../view/context';
import { LengthChart } from './length-chart';
import { panelsOf } from './theory-lines';

interface Verdict {
  sign: string;
  text: string;
  kind: string;
}

function verdictOf(claim: Claim): Verdict {
  if (claim.status !== 'theorem') return { sign: '○', text: 'observation', kind: 'observed' };
  return claim.holds === true
    ? { sign: '✓', text: 'holds', kind: 'holds' }
    : { sign: '✕', text: 'does not hold', kind: 'fails' };
}

function verdictBadge({ sign, text, kind }: Verdict): HTMLElement {
  return h('span', { class: `badge ${kind}` }, `${sign} ${text}`);
}

// Of each comparison the row that is nearest to failing, as the command prints it.
function tightest(rows: TheoryRow[]): TheoryRow[] {
  const best = new Map<string, TheoryRow>();
  for (const row of rows) {
    const known = best.get(row.compared);
    if (known === undefined || (row.strain ?? -1) > (known.strain ?? -1))
      best.set(row.compared, row);
  }
  return [...best.values()];
}

function lengthText(row: TheoryRow): string {
  return row.tokensTo === null
    ? integer(row.tokens)
    : `${significant(row.tokens)} to ${significant(row.tokensTo)}`;
}

function rowElement(row: TheoryRow, theorem: boolean): HTMLElement {
  const interval =
    row.interval === null
      ? ''
      : `${significant(row.interval[0])} to ${significant(row.interval[1])}`;
  const cells: [Child, boolean][] = [
    [pretty(row.subject), false],
    [lengthText(row), true],
    [significant(row.measured, 4), true],
    [interval, true],
    [theorem ? row.relation : 'beside', false],
    [significant(row.expected, 4), true],
    [integer(row.samples), true],
    [row.verdict, false],
  ];
  return h(
    'tr',
    null,
    h('th', { scope: 'row' }, pretty(row.compared)),
    cells.map(([cell, isNumber]) => h('td', { class: isNumber ? 'number' : '' }, cell)),
  );
}

const headings = [
  'compared',
  'subject',
  'N',
  'measured',
  '99 % interval',
  'relation',
  'expected',
  'samples',
  'verdict',
];

function rowsTable(claim: Claim): HTMLElement {
  const theorem = claim.status === 'theorem';
  const rows = theorem ? tightest(claim.rows) : claim.rows;
  const note =
    rows.length < claim.rows.length
      ? `Of ${plural(claim.rows.length, 'comparison')} the one of each kind that is nearest to failing; all are in the CSV.`
      : `All ${plural(claim.rows.length, 'comparison')}.`;
  const table = h(
    'table',
    { class: 'data' },
    h('caption', null, note),
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        headings.map((text) => h('th', { scope: 'col' }, text)),
      ),
    ),
    h(
      'tbody',
      null,
      rows.map((row) => rowElement(row, theorem)),
    ),
  );
  return scrollable(`Comparisons of ${claim.id}`, table);
}

function claimTable(claim: Claim): Table {
  return tableOf(`theory-${claim.id}`, claim.rows, [
    ['claim', () => claim.id],
    ['compared', (row) => row.compared],
    ['subject', (row) => row.subject],
    ['N', (row) => row.tokens],
    ['N_to', (row) => row.tokensTo],
    ['samples', (row) => row.samples],
    ['relation', (row) => row.relation],
    ['expected', (row) => row.expected],
    ['measured', (row) => row.measured],
    ['interval_low', (row) => row.interval?.[0] ?? null],
    ['interval_high', (row) => row.interval?.[1] ?? null],
    ['strain', (row) => row.strain],
    ['verdict', (row) => row.verdict],
  ]);
}

function claimCard(context: Context, claim: Claim): HTMLElement {
  const panels = panelsOf(claim);
  const chart =
    panels.length === 0 ? null : new LengthChart(context.theme, panels, 'Compared').element;
  return h(
    'article',
    { class: 'claim', 'aria-label': claim.id },
    h(
      'div',
      { class: 'card-header' },
      h('h3', null, claim.id, ' ', verdictBadge(verdictOf(claim))),
      csvButton(claim.id, () => claimTable(claim)),
    ),
    h('p', { class: 'statement' }, pretty(claim.statement)),
    h('p', { class: 'about' }, pretty(claim.computed)),
    chart,
    claim.notes.map((note) => h('p', { class: 'notes' }, pretty(note))),
    h(
      'details',
      null,
      h('summary', null, plural(claim.rows.length, 'comparison')),
      rowsTable(claim),
    ),
  );
}

function summary(theory: Theory): string {
  const theorems = theory.claims.filter((claim) => claim.status === 'theorem');
  const holding = theorems.filter((claim) => claim.holds === true).length;
  const rows = theory.claims.reduce((sum, claim) => sum + claim.rows.length, 0);
  const agreement =
    holding === theorems.length
      ? `All ${theorems.length} theorems agree`
      : `${holding} of ${theorems.length} theorems agree`;
  return `${agreement} with what was measured, in ${plural(rows, 'comparison')}. A theorem needs no measurement: what is tested here is that statement and code are the same thing.`;
}

export function theorySection(context: Context): Section {
  const element = h('section', { id: 'theory', 'aria-labelledby': 'theory-title' });
  let drawn: Theory | null = null;
  const update = () => {
    const { theory } = context.report;
    if (theory === null || theory === drawn) return;
    if (drawn !== null && JSON.stringify(theory) === JSON.stringify(drawn)) return;
    drawn = theory;
    fill(
      element,
      h('h2', { id: 'theory-title' }, 'Theory'),
      h('p', { class: 'lead' }, summary(theory)),
      h(
        'div',
        { class: 'claims' },
        theory.claims.map((claim) => claimCard(context, claim)),
      ),
    );
  };
  return {
    id: 'theory',
    title: 'Theory',
    element,
    present: () => context.report.theory !== null,
    update,
  };
}
