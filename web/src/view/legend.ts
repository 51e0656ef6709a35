// The bar above the charts: which activations are shown, in all of them at once,
// and how.
import { h, refill } from '../dom';
import { formula } from '../math';
import { activationsOf, taskRuns, tasksOf, type Context } from './context';
import { segmented } from './controls';
import { swatch } from './swatch';

export interface Legend {
  element: HTMLElement;
  update(): void;
}

function chip(context: Context, activation: string): HTMLElement {
  const { store, styles } = context;
  const shown = !store.get().hidden.has(activation);
  const click = () => store.toggle(activation);
  return h(
    'button',
    {
      type: 'button',
      class: 'chip',
      'aria-pressed': String(shown),
      'data-keep': `chip-${activation}`,
      on: { click },
    },
    h('span', { class: 'sr-only' }, 'Show '),
    swatch(styles.of(activation)),
    formula(activation),
  );
}

function allButton(context: Context): HTMLElement | null {
  if (context.store.get().hidden.size === 0) return null;
  return h(
    'button',
    {
      type: 'button',
      class: 'tool',
      on: { click: () => context.store.set({ hidden: new Set() }) },
    },
    'show all',
  );
}

function taskChoice(context: Context): HTMLElement | null {
  const tasks = tasksOf(context.report);
  if (tasks.length < 2) return null;
  return segmented(
    'Task',
    tasks.map((task) => ({ value: task, text: task })),
    context.store.get().task,
    (task) => context.store.set({ task, layer: 'all', head: 'all' }),
  );
}

function seedChoice(context: Context): HTMLElement | null {
  const runs = taskRuns(context);
  if (activationsOf(runs).length === runs.length) return null;
  const options = [
    { value: 'bands' as const, text: 'mean and range' },
    { value: 'lines' as const, text: 'each' },
  ];
  return segmented('Seeds', options, context.store.get().seeds, (seeds) =>
    context.store.set({ seeds }),
  );
}

function axisChoice(context: Context): HTMLElement {
  const options = [
    { value: 'step' as const, text: 'steps' },
    { value: 'time' as const, text: 'training time' },
  ];
  return segmented('Against', options, context.store.get().axis, (axis) =>
    context.store.set({ axis }),
  );
}

export function legendBar(context: Context): Legend {
  const chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Activations shown' });
  const choices = h('div', { class: 'choices' });
  const element = h(
    'div',
    { class: 'legend' },
    h('div', { class: 'legend-inner' }, chips, choices),
  );
  let shape = '';
  const update = () => {
    const activations = activationsOf(taskRuns(context));
    refill(
      chips,
      activations.map((activation) => chip(context, activation)),
      allButton(context),
    );
    // Radio buttons are left alone as long as they offer the same: replacing one
    // under the reader's finger would lose the focus.
    const next = JSON.stringify([
      tasksOf(context.report),
      context.store.get(),
      seedChoice(context) === null,
    ]);
    if (next === shape || choices.contains(document.activeElement)) return;
    shape = next;
    refill(choices, taskChoice(context), seedChoice(context), axisChoice(context));
  };
  return { element, update };
}
