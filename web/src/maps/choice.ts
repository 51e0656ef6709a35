// Which maps are looked at, and how: the input, layer, head and seed, and colours.
import { h } from '../dom';
import type { MapInput, MapLayer, Run } from '../model/document';
import { choose, segmented } from '../view/controls';
import { drawPicture } from './canvas';
import type { Contrast } from './colour';
import { windowsAcross } from './frame';
import { layerOf, type MapPlace } from './matrix';
import { visibleToken } from './text';

export interface MapChoice {
  place: MapPlace;
  seed: number;
  shared: boolean; // one colour scale for all
  contrast: Contrast;
}

export const firstChoice: MapChoice = {
  place: { input: 0, layer: 0, head: 0, window: 0 },
  seed: NaN,
  shared: false,
  contrast: 'root',
};

export type Change = (change: Partial<MapChoice>) => void;

function distinct(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

// Layers may differ in heads and windows.
function offered(runs: Run[], key: keyof MapPlace, layer?: number): number[] {
  const maps = runs.flatMap((run) => run.maps?.maps ?? []);
  return distinct(
    maps.filter((map) => layer === undefined || map.layer === layer).map((map) => map[key]),
  );
}

function nearest(value: number, values: number[]): number {
  return values.includes(value) || values.length === 0 ? value : values[0];
}

// What the runs do not offer goes to the first that they do.
export function settled(choice: MapChoice, runs: Run[]): MapChoice {
  const { input, head, window } = choice.place;
  const layer = nearest(choice.place.layer, offered(runs, 'layer'));
  return {
    ...choice,
    seed: nearest(choice.seed, distinct(runs.map((run) => run.seed))),
    place: {
      input: nearest(input, offered(runs, 'input')),
      layer,
      head: nearest(head, offered(runs, 'head', layer)),
      window: nearest(window, offered(runs, 'window', layer)),
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

function anyLayer(runs: Run[], layer: number): MapLayer | null {
  const found = runs.map((run) => layerOf(run.maps, layer)).find((known) => known !== null);
  return found ?? null;
}

function layerText(runs: Run[], layer: number): string {
  const known = anyLayer(runs, layer);
  if (known === null || known.kind === 'token') return String(layer + 1);
  const stage = known.kind === 'window' ? `, stage ${known.stage + 1}` : '';
  return `${layer + 1}: ${known.kind}${stage}`;
}

function windowText(runs: Run[], layer: number, window: number): string {
  const windows = anyLayer(runs, layer)?.windows ?? null;
  if (windows === null) return String(window + 1);
  const across = windowsAcross(windows);
  return `${Math.floor(window / across) + 1}, ${(window % across) + 1}`;
}

// `current` is asked at the time of a change: other controls may have changed it.
export function mapControls(current: () => MapChoice, runs: Run[], change: Change): HTMLElement[] {
  const { place, seed, contrast, shared } = current();
  const { layer } = place;
  const part = (
    label: string,
    key: keyof MapPlace,
    values: number[],
    textOf: (v: number) => string,
  ) =>
    choose(
      label,
      values.map((value) => ({ value, text: textOf(value) })),
      place[key],
      (value) => change({ place: { ...current().place, [key]: value } }),
    );
  const plain = (value: number) => String(value + 1);
  const windows = offered(runs, 'window', layer);
  const seeds = distinct(runs.map((run) => run.seed));
  const options = seeds.map((value) => ({ value, text: String(value) }));
  return [
    part('Layer', 'layer', offered(runs, 'layer'), (value) => layerText(runs, value)),
    part('Head', 'head', offered(runs, 'head', layer), plain),
    ...(windows.length > 1
      ? [part('Window', 'window', windows, (value) => windowText(runs, layer, value))]
      : []),
    ...(seeds.length > 1
      ? [choose('Seed', options, seed, (value) => change({ seed: value }))]
      : []),
    segmented('Colours', contrasts, contrast, (value) => change({ contrast: value })),
    segmented('Scale', scales, shared, (value) => change({ shared: value })),
  ];
}
