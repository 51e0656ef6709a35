// What was run: task, model, training, machine, and the commands that do it again.
import { h, refill, type Child } from '../dom';
import { copyButton } from '../download';
import { math } from '../math';
import type { Run } from '../model/document';
import { differences, readConfig, type Config } from '../text/config';
import { duration, integer, moment, plural } from '../text/format';
import { variantKeys } from '../text/variant';
import { tasksOf, type Context, type Section } from '../view/context';

type Fact = [string, Child];

function distinct<T>(values: T[]): T[] {
  return [...new Set(values)];
}

function joined(values: string[]): string {
  return distinct(values.filter((value) => value !== '')).join(', ') || '–';
}

// 2400, or 2400 to 9600.
function span(values: number[]): string {
  const known = distinct(values.filter(Number.isFinite)).sort((a, b) => a - b);
  if (known.length === 0) return '–';
  return known.length === 1
    ? integer(known[0])
    : `${integer(known[0])} to ${integer(known[known.length - 1])}`;
}

function seedList(runs: Run[]): string {
  const seeds = distinct(runs.map((run) => run.seed).filter(Number.isFinite)).sort((a, b) => a - b);
  if (seeds.length <= 6) return seeds.map(integer).join(', ') || '–';
  return `${integer(seeds[0])} to ${integer(seeds[seeds.length - 1])} (${integer(seeds.length)})`;
}

// The values of a key over all configs, joined, or null if no config has it.
function valueOf(configs: Config[], key: string): string | null {
  const values = distinct(configs.flatMap((config) => config.get(key) ?? []));
  return values.length === 0 ? null : values.join(' or ');
}

function phrases(configs: Config[], wanted: [string, (value: string) => string][]): string {
  const parts = wanted.flatMap(([key, phrase]) => {
    const value = valueOf(configs, key);
    return value === null || value === '' ? [] : [phrase(value)];
  });
  return parts.filter((part) => part !== '').join(', ') || '–';
}

const imageTasks = ['fashion-mnist', 'mnist', 'cifar10', 'images', 'imagenet', 'tiny-imagenet'];

// Equations have points in place of examples.
function isEquation(configs: Config[]): boolean {
  return ['pinnsformer', 'pinn'].includes(valueOf(configs, 'model.name') ?? '');
}

function modelText(configs: Config[], task: string): string {
  const isImage = imageTasks.includes(task.split(',')[0]);
  const family = (valueOf(configs, 'model.name') ?? '').split('-')[0];
  // Swin grows from stage to stage, and these know places in ways of their own.
  const grows = family === 'swin';
  const equation = isEquation(configs);
  const plain = family === 'pinn'; // a perceptron without heads
  const ownPlaces = grows || family === 'xcit' || equation;
  return phrases(configs, [
    ['model.name', (value) => (['vit', 'gpt', 'classifier'].includes(value) ? '' : value)],
    [
      'model.depth',
      (value) => (plain ? `${value} layers` : `${value} ${value === '1' ? 'block' : 'blocks'}`),
    ],
    ['model.dim', (value) => (plain ? '' : `width ${value}${grows ? ' in the first stage' : ''}`)],
    [
      'model.heads',
      (value) => (grows || plain ? '' : `${value} ${value === '1' ? 'head' : 'heads'}`),
    ],
    ['model.mlp', (value) => (grows ? '' : plain ? `width ${value}` : `mlp ${value}`)],
    ['model.patch', (value) => (isImage ? `patches of ${value} × ${value}` : '')],
    ['task.context', (value) => (isImage || equation ? '' : `context ${value}`)],
    ['model.positions', (value) => (ownPlaces ? '' : `${value} positions`)],
    ['model.qk_norm', (value) => (value === 'none' ? '' : `${value} norm of q and k`)],
  ]);
}

function trainingText(configs: Config[]): string {
  // L-BFGS finds the length of its steps by itself.
  const lbfgs = valueOf(configs, 'train.optimizer') === 'lbfgs';
  const searches = lbfgs && valueOf(configs, 'train.adam_steps') === '0';
  const ofAdam = (text: string): string => (searches ? '' : text);
  return phrases(configs, [
    ['train.optimizer', () => (lbfgs ? 'L-BFGS' : '')],
    ['train.adam_steps', (value) => (lbfgs && !searches ? `AdamW for the first ${value}` : '')],
    ['train.batch', (value) => (isEquation(configs) ? '' : `batches of ${value}`)],
    ['train.accumulate', (value) => (value === '1' ? '' : `${value} batches a step`)],
    ['train.lr', (value) => ofAdam(`learning rate ${value}`)],
    ['train.warmup', (value) => ofAdam(`warm-up ${value}`)],
    ['train.weight_decay', (value) => ofAdam(`weight decay ${value}`)],
    [
      'train.clip',
      (value) => ofAdam(value === '0.0' || value === '0' ? 'no clipping' : `clipped at ${value}`),
    ],
    ['train.autocast', (value) => (value === 'none' ? '' : value)],
  ]);
}

function threadsText(runs: Run[]): string {
  const threads = span(runs.map((run) => run.threads));
  return `${threads} ${threads === '1' ? 'thread' : 'threads'}`;
}

function teacherFact(runs: Run[]): Fact[] {
  const teachers = joined(runs.map((run) => run.teacher));
  return teachers === '–' ? [] : [['Teacher', teachers]];
}

function facts(runs: Run[], task: string, generated: string): Fact[] {
  const configs = runs.map((run) => readConfig(run.config));
  const total = runs.reduce(
    (sum, run) => sum + (run.trainSeconds || 0) + (run.evalSeconds || 0),
    0,
  );
  const tokens = span(runs.map((run) => run.tokens).filter((value) => value > 0));
  return [
    ['Task', [task, tokens === '–' ? '' : `, ${tokens} tokens`]],
    [
      'Model',
      [modelText(configs, task), `; ${span(runs.map((run) => run.parameters))} parameters`],
    ],
    ['Training', [`${span(runs.map((run) => run.steps))} steps, `, trainingText(configs)]],
    ...teacherFact(runs),
    ['Seeds', seedList(runs)],
    ['Runs', `${plural(runs.length, 'run')}, ${duration(total)} of training and evaluation in all`],
    [
      'Machine',
      `${joined(runs.map((run) => run.machine))}; ${joined(runs.map((run) => run.instructionSet))}, ${threadsText(runs)} a run`,
    ],
    [
      'Started',
      moment(
        runs
          .map((run) => run.started)
          .filter((value) => value !== '')
          .sort()[0] ?? '',
      ) || '–',
    ],
    ['Written', moment(generated) || '–'],
    ['Version', `polyattn ${joined(runs.map((run) => run.version))}`],
  ];
}

function differingKeys(runs: Run[]): HTMLElement | null {
  const found = differences(
    runs.map((run) => readConfig(run.config)),
    ['model.activation', 'train.seed', ...variantKeys(runs.map((run) => run.activation))],
  );
  if (found.length === 0) return null;
  const items = found.map(({ key, values }) =>
    h(
      'li',
      null,
      h('code', null, key),
      `: ${values.slice(0, 6).join(', ')}${values.length > 6 ? ', …' : ''}`,
    ),
  );
  return h(
    'div',
    { class: 'cautions' },
    h('strong', null, 'Beside activation, variant and seed, the configs of these runs differ in'),
    h('ul', null, items),
  );
}

function commandBlock(command: string, place: number): HTMLElement {
  const code = h('code', null, command);
  return h(
    'div',
    { class: 'command' },
    h('pre', { tabindex: 0, 'aria-label': `Command ${place + 1}` }, code),
    copyButton('the command', command, code),
  );
}

const fewCommands = 3;

function commandList(runs: Run[], key: string): Child {
  const commands = distinct(runs.map((run) => run.command).filter((command) => command !== ''));
  if (commands.length === 0) return null;
  const blocks = commands.map(commandBlock);
  const title =
    commands.length === 1
      ? 'The command that repeats it'
      : `The ${commands.length} commands that repeat it`;
  if (commands.length <= fewCommands) return [h('h3', null, title), blocks];
  return h('details', { 'data-keep': `commands-${key}` }, h('summary', null, title), blocks);
}

const explanation = [
  'With one config and one seed, all activations start from the same weights and see the same batches in the same order; only the formula that turns scores into attention weights differs: ',
];

function taskSetup(runs: Run[], task: string, generated: string, single: boolean): Child[] {
  const list = facts(runs, task, generated).map(([name, value]) =>
    h('div', null, h('dt', null, name), h('dd', null, value)),
  );
  return [
    single ? null : h('h3', null, task),
    h('dl', { class: 'facts' }, list),
    differingKeys(runs),
    commandList(runs, task),
  ];
}

export function setupSection(context: Context): Section {
  const element = h('section', { id: 'setup', 'aria-labelledby': 'setup-title' });
  const update = () => {
    const { report } = context;
    const tasks = tasksOf(report);
    const blocks = tasks.map((task) =>
      taskSetup(
        report.runs.filter((run) => run.task === task),
        task,
        report.generated,
        tasks.length === 1,
      ),
    );
    const scores = math('A=\\varphi(QK^{\\top}/\\sqrt{D})');
    refill(
      element,
      h('h2', { id: 'setup-title' }, 'What was run'),
      h('p', { class: 'lead' }, explanation, scores, '.'),
      blocks,
    );
  };
  return {
    id: 'setup',
    title: 'Set-up',
    element,
    present: () => context.report.runs.length > 0,
    update,
  };
}
