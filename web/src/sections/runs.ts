// The runs one by one, with their configs.
import { h, refill, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import { formula } from '../math';
import type { Run, RunState } from '../model/document';
import { tableOf, type Table } from '../text/csv';
import {
  duration,
  figureText,
  integer,
  megabytes,
  moment,
  plural,
  significant,
} from '../text/format';
import { tasksOf, type Context, type Section } from '../view/context';
import { swatch } from '../view/swatch';

const signs: Record<RunState, string> = {
  running: '▸',
  finished: '✓',
  diverged: '✕',
  interrupted: '‖',
};

export function stateText(state: RunState): HTMLElement {
  return h(
    'span',
    { class: `state ${state}` },
    h('span', { 'aria-hidden': 'true' }, `${signs[state]} `),
    state,
  );
}

function figure(run: Run): string {
  if (run.accuracy !== null) return `${figureText('accuracy', run.accuracy)} %`;
  if (run.relativeL2 !== null) return figureText('relative_l2', run.relativeL2);
  return run.bitsPerByte === null ? '–' : `${figureText('bits_per_byte', run.bitsPerByte)} bits`;
}

function progress(run: Run): Child {
  const text = `${integer(run.step)} of ${integer(run.steps)}`;
  if (run.state !== 'running') return text;
  const bar = h('progress', {
    max: run.steps > 0 ? run.steps : 1,
    value: run.step || 0,
    'aria-label': `Steps of ${run.name}`,
  });
  return [text, bar];
}

function recordsText({ train }: Run): string {
  const shown = train.step.length;
  return shown < train.points ? `${integer(shown)} of ${integer(train.points)}` : integer(shown);
}

// A run that was killed still says that it is running: its last record tells.
function stateNote(run: Run): Child {
  const { divergence } = run;
  if (divergence !== null) return under(`step ${integer(divergence.step)}: ${divergence.what}`);
  if (run.state !== 'running' || run.updated === '') return null;
  return under(`last record ${moment(run.updated)}`);
}

function under(text: string): HTMLElement {
  return h('span', { class: 'under' }, text);
}

function rowOf(context: Context, run: Run, withTask: boolean): HTMLElement {
  const cells: Child[] = [
    h(
      'span',
      { class: 'name' },
      swatch(context.styles.of(run.activation)),
      formula(run.activation),
    ),
    integer(run.seed),
    [stateText(run.state), stateNote(run)],
    progress(run),
    figure(run),
    run.loss === null ? '–' : significant(run.loss),
    duration(run.trainSeconds),
    megabytes(run.peakMb),
    run.maxWeightNorm === 0 ? '–' : significant(run.maxWeightNorm),
    run.maxJacobianNorm === 0 ? '–' : significant(run.maxJacobianNorm),
    recordsText(run),
  ];
  return h(
    'tr',
    null,
    h('th', { scope: 'row' }, run.name),
    withTask ? h('td', null, run.task) : null,
    cells.map((cell, i) => h('td', { class: i === 1 || i > 2 ? 'number' : '' }, cell)),
  );
}

const headings = [
  'activation',
  'seed',
  'state',
  'steps',
  'result',
  'loss',
  'time',
  'memory',
  'max ‖A‖',
  'max ‖A′‖',
  'records',
];
const words = ['run', 'task', 'activation', 'state'];

function configBlocks(runs: Run[]): HTMLElement[] {
  return runs
    .filter((run) => run.config !== '')
    .map((run) =>
      h(
        'details',
        { class: 'config', 'data-keep': `config-${run.name}` },
        h('summary', null, `config.toml of ${run.name}`),
        h('pre', { tabindex: 0, 'aria-label': `Config of ${run.name}` }, run.config),
      ),
    );
}

function table(runs: Run[]): Table {
  return tableOf('runs', runs, [
    ['run', (run) => run.name],
    ['task', (run) => run.task],
    ['activation', (run) => run.activation],
    ['seed', (run) => run.seed],
    ['state', (run) => run.state],
    ['step', (run) => run.step],
    ['steps', (run) => run.steps],
    ['parameters', (run) => run.parameters],
    ['loss', (run) => run.loss],
    ['accuracy', (run) => run.accuracy],
    ['bits_per_byte', (run) => run.bitsPerByte],
    ['relative_l1', (run) => run.relativeL1],
    ['relative_l2', (run) => run.relativeL2],
    ['train_seconds', (run) => run.trainSeconds],
    ['eval_seconds', (run) => run.evalSeconds],
    ['peak_mb', (run) => run.peakMb],
    ['tokens', (run) => run.tokens],
    ['max_weight_norm', (run) => run.maxWeightNorm],
    ['max_jacobian_norm', (run) => run.maxJacobianNorm],
    ['machine', (run) => run.machine],
    ['threads', (run) => run.threads],
    ['version', (run) => run.version],
    ['started', (run) => run.started],
    ['command', (run) => run.command],
  ]);
}

function counts(runs: Run[]): string {
  const parts = (['running', 'finished', 'diverged', 'interrupted'] as RunState[]).flatMap(
    (state) => {
      const count = runs.filter((run) => run.state === state).length;
      return count > 0 ? [`${integer(count)} ${state}`] : [];
    },
  );
  return `${plural(runs.length, 'run')}: ${parts.join(', ')}.`;
}

export function runsSection(context: Context): Section {
  const element = h('section', { id: 'runs', 'aria-labelledby': 'runs-title' });
  const update = () => {
    const { runs } = context.report;
    const withTask = tasksOf(context.report).length > 1;
    const texts = ['run', ...(withTask ? ['task'] : []), ...headings];
    const head = h(
      'thead',
      null,
      h(
        'tr',
        null,
        texts.map((text) =>
          h('th', { scope: 'col', class: words.includes(text) ? '' : 'number' }, text),
        ),
      ),
    );
    const body = h(
      'tbody',
      null,
      runs.map((run) => rowOf(context, run, withTask)),
    );
    const whole = h(
      'table',
      { class: 'data' },
      h('caption', { class: 'sr-only' }, 'All runs'),
      head,
      body,
    );
    const configs = h(
      'details',
      { 'data-keep': 'configs' },
      h('summary', null, 'Configs'),
      configBlocks(runs),
    );
    const box = scrollable('All runs', whole);
    box.classList.add('tall');
    refill(
      element,
      h(
        'div',
        { class: 'section-header' },
        h('h2', { id: 'runs-title' }, 'Runs'),
        csvButton('all runs', () => table(context.report.runs)),
      ),
      h('p', { class: 'lead' }, counts(runs)),
      box,
      configs,
    );
  };
  return {
    id: 'runs',
    title: 'Runs',
    element,
    present: () => context.report.runs.length > 0,
    update,
  };
}
