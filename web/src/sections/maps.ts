// Attention maps: the same input, layer and head under each activation.
import { fill, h, refill } from '../dom';
import { watchVisibility } from '../lazy';
import { firstChoice, inputButtons, mapControls, settled, type MapChoice } from '../maps/choice';
import { findMap, matrixOf, type Matrix } from '../maps/matrix';
import { MapPanel } from '../maps/panel';
import type { Spot } from '../maps/pointing';
import type { Maps, Run } from '../model/document';
import { visibleRuns, type Context, type Section } from '../view/context';

interface Shown {
  run: Run;
  maps: Maps;
  matrix: Matrix | null;
}

const introduction =
  'A row is a query, a column a key; both begin at the top left. Weights of softmax are ' +
  'positive and sum to 1. Weights of a polynomial have signs and need not sum to anything. ' +
  'Point at a row, a patch or a token to see what it looks at under every activation; click ' +
  'to keep it.';

// Of a picture the patch in the middle, of a text the last token.
function middle(maps: Maps | undefined, input: number): Spot {
  if (maps === undefined) return { row: 0, column: null };
  const picture = maps.inputs[input]?.picture ?? null;
  if (picture === null) return { row: maps.rows - 1, column: null };
  const across = Math.floor(picture.width / picture.patch);
  const down = Math.floor(picture.height / picture.patch);
  const patch = Math.floor(down / 2) * across + Math.floor(across / 2);
  return { row: patch + maps.prefix, column: null };
}

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
    // A control under the reader's fingers stays.
    if (!this.bar.contains(document.activeElement)) {
      fill(
        this.bar,
        mapControls(() => this.choice, runs, change),
      );
    }
    this.build(runs);
  }

  private change(part: Partial<MapChoice>): void {
    if (part.place !== undefined && part.place.input !== this.choice.place.input)
      this.pinned = null;
    this.choice = { ...this.choice, ...part };
    this.update();
  }

  // One run an activation: of the chosen seed, or the first that has maps.
  private chosen(runs: Run[]): Shown[] {
    const byActivation = new Map<string, Run>();
    for (const run of runs) {
      const isFirst = !byActivation.has(run.activation);
      if (isFirst || run.seed === this.choice.seed) byActivation.set(run.activation, run);
    }
    return [...byActivation.values()].flatMap((run) => {
      const map = findMap(run, this.choice.place);
      if (run.maps === null || map === null) return [];
      return [{ run, maps: run.maps, matrix: matrixOf(map, run.maps) }];
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

  private panel({ run, maps, matrix }: Shown, overall: number): MapPanel | null {
    const { place, contrast, shared } = this.choice;
    const input = maps.inputs[place.input];
    if (matrix === null || input === undefined) return null;
    const { theme, styles } = this.context;
    return new MapPanel({
      run,
      maps,
      input,
      matrix,
      name: `${input.label || 'input'}, layer ${place.layer + 1}, head ${place.head + 1}`,
      look: { largest: shared ? overall : matrix.largest, contrast, shade: theme.shade() },
      styles,
      onSpot: (spot, pinned) => this.pointed(spot, pinned),
      onLeave: () => this.rest(),
    });
  }

  private pointed(spot: Spot, pinned: boolean): void {
    if (pinned) this.pinned = spot;
    for (const panel of this.panels) panel.show(spot);
    if (spot.column === null) return;
    const readings = this.panels.map((panel) => panel.reading(spot.row, spot.column));
    this.spoken.textContent = readings.join('; ');
  }

  // Nobody points: what was clicked, or a place in the middle.
  private rest(): void {
    const spot = this.pinned ?? middle(this.shown[0]?.maps, this.choice.place.input);
    for (const panel of this.panels) panel.show(spot);
  }
}

function damaged({ run, maps }: Shown): HTMLElement {
  const size = `${maps.rows} × ${maps.columns}`;
  return h('p', { class: 'empty' }, `The map of ${run.name} is damaged: its size is not ${size}.`);
}
