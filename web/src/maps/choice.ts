// Which maps are looked at, and how: the input, layer, head and seed, and colours.
import { h } from '../dom';
import type { MapInput, Run } from '../model/document';
import { choose, segmented } from '../view/controls';
import { drawPicture } from './canvas';
import type { Contrast } from './colour';
import { visibleToken, type Place } from './matrix';

export interface MapChoice {
  place: Place;
  seed: number;
  shared: boolean; // one colour scale for all
  contrast: Contrast;
}

export const firstChoice: MapChoice = {
  place: { input: 0, layer: 0, head: 0 },
  seed: NaN,
  shared: false,
  contrast: 'root',
};

export type Change = (change: Partial<MapChoice>) => void;

function distinct(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function offered(runs: Run[], key: keyof Place): number[] {
  return distinct(runs.flatMap((run) => run.maps?.maps ?? []).map((map) => map[key]));
}

function nearest(value: number, values: number[]): number {
  return values.includes(value) || values.length === 0 ? value : values[0];
}

// What the runs do not offer goes to the first that they do.
export function settled(choice: MapChoice, runs: Run[]): MapChoice {
  const { input, layer, head } = choice.place;
  return {
    ...choice,
    seed: nearest(choice.seed, distinct(runs.map((run) => run.seed))),
    place: {
      input: nearest(input, offered(runs, 'input')),
      layer: nearest(layer, offered(runs, 'layer')),
      head: nearest(head, offered(runs, 'head')),
    },
  };
}

function thumbnail(input: MapInput): HTMLElement | null {
  if (input.picture === null) {
    return h('code', null, (input.tokens ?? []).slice(0, 24).map(visibleToken).join(''));
  }
  const canvas = h('canvas', { 'aria-hidden': 'true' });
  return drawPicture(canvas, input.picture, 2) ? canvas : null;
}

export function inputButtons({ place }: MapChoice, runs: Run[], change: Change): HTMLElement[] {
  const inputs = runs[0]?.maps?.inputs ?? [];
  return inputs.map((input, i) => {
    const props = {
      type: 'button',
      class: 'input',
      'aria-pressed': String(i === place.input),
      'data-keep': `input-${i}`,
      on: { click: () => change({ place: { ...place, input: i } }) },
    };
    return h('button', props, thumbnail(input), h('span', null, input.label || `input ${i + 1}`));
  });
}

const contrasts = [
  { value: 'root' as Contrast, text: 'lift small weights' },
  { value: 'linear' as Contrast, text: 'linear' },
];

const scales = [
  { value: false, text: 'each its own' },
  { value: true, text: 'one for all' },
];

// `current` is asked at the time of a change: other controls may have changed it.
export function mapControls(current: () => MapChoice, runs: Run[], change: Change): HTMLElement[] {
  const { place, seed, contrast, shared } = current();
  const part = (key: 'layer' | 'head') =>
    choose(
      key === 'layer' ? 'Layer' : 'Head',
      offered(runs, key).map((value) => ({ value, text: String(value + 1) })),
      place[key],
      (value) => change({ place: { ...current().place, [key]: value } }),
    );
  const seeds = distinct(runs.map((run) => run.seed));
  const options = seeds.map((value) => ({ value, text: String(value) }));
  return [
    part('layer'),
    part('head'),
    ...(seeds.length > 1
      ? [choose('Seed', options, seed, (value) => change({ seed: value }))]
      : []),
    segmented('Colours', contrasts, contrast, (value) => change({ contrast: value })),
    segmented('Scale', scales, shared, (value) => change({ shared: value })),
  ];
}
