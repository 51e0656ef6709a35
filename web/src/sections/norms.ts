// The norms that the theory speaks of, as training went on.
import { ChartCard } from '../charts/card';
import type { ChartGroup } from '../charts/group';
import type { ChartSpec } from '../charts/spec';
import { fill, h } from '../dom';
import { math } from '../math';
import { taskRuns, type Context, type Section } from '../view/context';
import { choose, numbered, segmented, type Option } from '../view/controls';
import { currentAxis } from './axis';
import { layerName } from './layer-names';
import { LayerPanel } from './layers';
import { pickOf, quantities, type Quantity } from './quantities';
import { references } from './references';
import { StartPanel } from './start';

function specOf(context: Context, quantity: Quantity): ChartSpec {
  const { id, title, tex, short, about } = quantity;
  return {
    id: `norm-${id}`,
    title,
    heading: () => [math(tex), document.createTextNode(` ${short}`)],
    about,
    log: true,
    compact: false,
    pick: () => pickOf(id, context.store.get()),
    references: () => references(id, taskRuns(context), context.store.get()),
  };
}

function sizes(context: Context): { layers: number; heads: number } {
  const layers = taskRuns(context).map((run) => run.norms.layers);
  const heads = layers.flatMap((list) => list.map((layer) => layer.heads.length));
  return {
    layers: Math.max(0, ...layers.map((list) => list.length)),
    heads: Math.max(0, ...heads),
  };
}

function layerOptions(context: Context, count: number): Option<number | 'all'>[] {
  return numbered(count, 'all').map(({ value, text }) => ({
    value,
    text: value === 'all' ? text : layerName(taskRuns(context), value),
  }));
}

function controls(context: Context): HTMLElement[] {
  const { store } = context;
  const { layer, head, combine, relative } = store.get();
  const { layers, heads } = sizes(context);
  return [
    choose('Layer', layerOptions(context, layers), layer, (value) => store.set({ layer: value })),
    choose('Head', numbered(heads, 'all'), head, (value) => store.set({ head: value })),
    segmented(
      'Of layers, heads and the batch',
      [
        { value: 'max' as const, text: 'the largest' },
        { value: 'mean' as const, text: 'the mean' },
      ],
      combine,
      (value) => store.set({ combine: value }),
    ),
    segmented(
      'Norms',
      [
        { value: false, text: 'as they are' },
        { value: true, text: 'over √N' },
      ],
      relative,
      (value) => store.set({ relative: value }),
    ),
  ];
}

export function normsSection(context: Context, group: ChartGroup): Section {
  const bar = h('div', { class: 'controls' });
  const cards = quantities.map(
    (quantity) =>
      new ChartCard(context, group, () => currentAxis(context), specOf(context, quantity)),
  );
  const layers = new LayerPanel(context, group);
  const start = new StartPanel(context);
  const lead = h(
    'p',
    { class: 'lead' },
    'The hypothesis under test: attention works because these norms stay of order √N. A logarithmic axis is the default, because norms of polynomials can be many times larger.',
  );
  const element = h(
    'section',
    { id: 'norms', 'aria-labelledby': 'norms-title' },
    h('h2', { id: 'norms-title' }, 'Norms'),
    lead,
    bar,
    h(
      'div',
      { class: 'cards' },
      cards.map((card) => card.element),
    ),
    layers.element,
    start.element,
  );
  let shape = '';
  const update = () => {
    const next = JSON.stringify([sizes(context), context.store.get().task]);
    if (next !== shape) fill(bar, controls(context));
    shape = next;
    for (const card of cards) card.update();
    layers.update();
    start.update();
  };
  context.theme.subscribe(() => {
    for (const card of cards) card.restyle();
    layers.restyle();
  });
  const present = () => context.report.runs.some((run) => run.norms.step.length > 0);
  return { id: 'norms', title: 'Norms', element, present, update };
}
