// Attention maps: the same input, layer and head under each activation.
import { fill, h, refill } from '../dom';
import { watchVisibility } from '../lazy';
import { firstChoice, inputButtons, mapControls, settled, type MapChoice } from '../maps/choice';
import { frameOf, middleRow, type Frame } from '../maps/frame';
import { findMap, layerOf, matrixOf, type MapPlace, type Matrix } from '../maps/matrix';
import { MapPanel } from '../maps/panel';
import type { Spot } from '../maps/pointing';
import type { Run } from '../model/document';
import { visibleRuns, type Context, type Section } from '../view/context';

interface Shown {
  run: Run;
  frame: Frame;
  matrix: Matrix | null;
}

const introduction =
  'A row is a query, a column a key; both begin at the top left. Weights of softmax are ' +
  'positive and sum to 1. Weights of a polynomial have signs and need not sum to anything. ' +
  'Point at a row, a patch or a token to see what it looks at under every activation; click ' +
  'to keep it, or to go to another window.';

export class MapsSection implements Section {
  readonly id = 'maps';
  readonly title = 'Attention';
  readonly element: HTMLElement;
  private readonly bar = h('div', { class: 'controls' });
  private readonly inputs = h('div', { class: 'inputs', role: 'group', 'aria-label': 'Inputs' });
  private readonly grid = h('div', { class: 'maps' });
  private readonly spoken = h('p', { class: 'sr-only', 'aria-live': 'polite' });
  private choice: MapChoice = firstChoice;
  private pinned: Spot | null = null;
  private shown: Shown[] = [];
  private panels: MapPanel[] = [];
  private drawn = '';
  private visible = false;

  constructor(private readonly context: Context) {
    this.element = h(
      'section',
      { id: 'maps', 'aria-labelledby': 'maps-title' },
      h('h2', { id: 'maps-title' }, 'Attention maps'),
      h('p', { class: 'lead' }, introduction),
      this.inputs,
      this.bar,
      this.spoken,
      this.grid,
    );
    watchVisibility(this.grid, (visible) => {
      this.visible = visible;
      if (visible) this.update();
    });
    context.theme.subscribe(() => {
      this.drawn = '';
      this.update();
    });
  }

  present(): boolean {
    return this.context.report.runs.some((run) => run.maps !== null);
  }

  update(): void {
    const runs = visibleRuns(this.context).filter((run) => (run.maps?.maps.length ?? 0) > 0);
    this.choice = settled(this.choice, runs);
    const signature = JSON.stringify([this.choice, runs.map((run) => [run.name, run.step])]);
    if (!this.visible || signature === this.drawn) return;
    this.drawn = signature;
    const change = (part: Partial<MapChoice>) => this.change(part);
    refill(this.inputs, inputButtons(this.choice, runs, change));
    // A control under the reader's fingers stays, or has the focus again.
    const held = document.activeElement;
    if (!this.bar.contains(held) || held instanceof HTMLSelectElement) {
      refill(
        this.bar,
        mapControls(() => this.choice, runs, change),
      );
    }
    this.build(runs);
  }

  private change(part: Partial<MapChoice>): void {
    if (part.place !== undefined && !this.keepsRow(part.place)) this.pinned = null;
    this.choice = { ...this.choice, ...part };
    this.update();
  }

  // A row means the same in all layers that are over all tokens.
  private keepsRow(place: MapPlace): boolean {
    const before = this.choice.place;
    if (place.input !== before.input) return false;
    return place.layer === before.layer || this.shown[0]?.frame.layer.kind === 'token';
  }

  // One run an activation: of the chosen seed, or the first that has maps.
  private chosen(runs: Run[]): Shown[] {
    const byActivation = new Map<string, Run>();
    for (const run of runs) {
      const isFirst = !byActivation.has(run.activation);
      if (isFirst || run.seed === this.choice.seed) byActivation.set(run.activation, run);
    }
    return [...byActivation.values()].flatMap((run) => {
      const { place } = this.choice;
      const map = findMap(run, place);
      const layer = layerOf(run.maps, place.layer);
      const input = run.maps?.inputs[place.input];
      if (map === null || layer === null || input === undefined) return [];
      return [{ run, frame: frameOf(layer, place.window, input), matrix: matrixOf(map, layer) }];
    });
  }

  private build(runs: Run[]): void {
    this.shown = this.chosen(runs);
    const overall = Math.max(0, ...this.shown.map(({ matrix }) => matrix?.largest ?? 0));
    this.panels = [];
    const elements = this.shown.map((shown) => {
      const panel = this.panel(shown, overall);
      if (panel === null) return damaged(shown);
      this.panels.push(panel);
      return panel.element;
    });
    const nothing = h('p', { class: 'empty' }, 'No maps for what is chosen.');
    fill(this.grid, elements.length > 0 ? elements : nothing);
    this.rest();
  }

  private panel({ run, frame, matrix }: Shown, overall: number): MapPanel | null {
    const { place, contrast, shared } = this.choice;
    if (matrix === null) return null;
    const { theme, styles } = this.context;
    return new MapPanel({
      run,
      frame,
      matrix,
      name: `${frame.input.label || 'input'}, layer ${place.layer + 1}, head ${place.head + 1}`,
      look: { largest: shared ? overall : matrix.largest, contrast, shade: theme.shade() },
      styles,
      onSpot: (spot, pinned) => this.pointed(spot, pinned),
      onLeave: () => this.rest(),
    });
  }

  private pointed(spot: Spot, pinned: boolean): void {
    const { place } = this.choice;
    if (spot.window !== undefined && spot.window !== place.window) {
      if (pinned) this.goTo(spot.window, spot);
      return;
    }
    if (pinned) this.pinned = spot;
    for (const panel of this.panels) panel.show(spot);
    if (spot.column === null) return;
    const readings = this.panels.map((panel) => panel.reading(spot.row, spot.column));
    this.spoken.textContent = readings.join('; ');
  }

  // To another window, if it was kept.
  private goTo(window: number, spot: Spot): void {
    const place = { ...this.choice.place, window };
    if (!this.shown.some(({ run }) => findMap(run, place) !== null)) return;
    this.pinned = spot;
    this.change({ place });
  }

  // Nobody points: what was clicked, or a place in the middle.
  private rest(): void {
    if (this.shown.length === 0) return;
    const spot = this.pinned ?? { row: middleRow(this.shown[0].frame), column: null };
    for (const panel of this.panels) panel.show(spot);
  }
}

function damaged({ run, frame }: Shown): HTMLElement {
  const size = `${frame.layer.rows} × ${frame.layer.columns}`;
  return h('p', { class: 'empty' }, `The map of ${run.name} is damaged: its size is not ${size}.`);
}
