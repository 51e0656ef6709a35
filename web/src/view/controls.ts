// Choices: native radio buttons and selects, so that keyboards and screen readers
// know what to do with them.
import { h } from '../dom';

export interface Option<T> {
  value: T;
  text: string;
}

let serial = 0;

export function segmented<T>(
  label: string,
  options: Option<T>[],
  current: T,
  change: (value: T) => void,
): HTMLFieldSetElement {
  const name = `choice-${++serial}`;
  const inputs = options.map(({ value, text }) => {
    const input = h('input', { type: 'radio', name, on: { change: () => change(value) } });
    input.checked = value === current;
    return h('label', null, input, h('span', null, text));
  });
  return h(
    'fieldset',
    { class: 'segmented' },
    h('legend', null, label),
    h('div', { class: 'segments' }, inputs),
  );
}

export function choose<T>(
  label: string,
  options: Option<T>[],
  current: T,
  change: (value: T) => void,
): HTMLElement {
  const id = `choice-${++serial}`;
  const items = options.map(({ value, text }, i) =>
    h('option', { value: i, selected: value === current }, text),
  );
  const select = h('select', { id, 'data-keep': `choose-${label}` }, items);
  select.addEventListener('change', () => change(options[Number(select.value)].value));
  return h('div', { class: 'choose' }, h('label', { for: id }, label), select);
}

export function numbered(count: number, all: string): Option<number | 'all'>[] {
  const single = Array.from({ length: count }, (_, i) => ({
    value: i as number | 'all',
    text: String(i + 1),
  }));
  return [{ value: 'all', text: all }, ...single];
}
