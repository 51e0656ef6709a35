// The map of one activation: matrix, colour bar, and what a row of it looks at.
import { fill, h } from '../dom';
import { csvButton } from '../download';
import { formula } from '../math';
import { significant } from '../text/format';
import type { Styles } from '../view/palette';
import { swatch } from '../view/swatch';
import { drawMatrix, drawOverlay, drawPicture, type Look } from './canvas';
import { gradient } from './colour';
import { frameNote, keyPlace, queryPlace } from './frame';
import { spotByKey, spotInMatrix, spotInPicture, type Spot } from './pointing';
import { fillTokens } from './tokens';
import { description, mapTable, reading, type Described } from './words';

export interface PanelOptions extends Described {
  look: Look;
  styles: Styles;
  onSpot(spot: Spot, pinned: boolean): void;
  onLeave(): void;
}

const pictureSide = 448; // pixels of the canvas, about

function titleOf({ run, styles }: PanelOptions): HTMLElement {
  const seed = h('span', { class: 'seed' }, `seed ${run.seed}`);
  const name = [swatch(styles.of(run.activation)), formula(run.activation), seed];
  return h('h3', null, h('span', { class: 'name' }, name));
}

function colourBar({ look, matrix }: PanelOptions): HTMLElement {
  const { largest, contrast, shade } = look;
  const middle = contrast === 'root' ? largest / 4 : largest / 2;
  const values = [-largest, -middle, 0, middle, largest];
  return h(
    'div',
    { class: 'colour-bar' },
    h('div', { class: 'gradient', style: `background: ${gradient(shade)}` }),
    h(
      'div',
      { class: 'ticks' },
      values.map((value) => h('span', null, significant(value, 2))),
    ),
    h('p', { class: 'notes' }, `Stored in steps of ${significant(matrix.step, 2)}.`),
  );
}

export class MapPanel {
  readonly element: HTMLElement;
  private readonly matrix = h('canvas', { class: 'matrix', 'aria-hidden': 'true' });
  private readonly cross = h('div', { class: 'cross', 'aria-hidden': 'true' });
  private readonly picture = h('canvas', { class: 'picture', 'aria-hidden': 'true' });
  private readonly tokens = h('div', { class: 'tokens' });
  private readonly readout = h('p', { class: 'readout' });
  private readonly scale: number;
  private keyed: Spot = { row: 0, column: 0 };

  constructor(private readonly options: PanelOptions) {
    const { picture } = options.frame.input;
    const side = Math.max(picture?.width ?? 1, picture?.height ?? 1);
    this.scale = Math.max(1, Math.round(pictureSide / side));
    const frame = this.frame();
    const note = frameNote(options.frame);
    this.element = h(
      'figure',
      { class: 'map' },
      h('div', { class: 'card-header' }, titleOf(options), this.csv()),
      h(
        'div',
        { class: 'map-body' },
        h('div', { class: 'matrix-column' }, frame, colourBar(options)),
        picture === null ? this.tokens : this.picture,
      ),
      this.readout,
      note === '' ? null : h('p', { class: 'notes' }, note),
    );
    drawMatrix(this.matrix, options.matrix, options.look);
    this.listen(frame);
    if (picture !== null && !drawPicture(this.picture, picture, this.scale)) {
      this.picture.replaceWith(h('p', { class: 'empty' }, 'The picture is damaged.'));
    }
  }

  show({ row: wanted, column }: Spot): void {
    const { matrix, frame } = this.options;
    const row = Math.min(wanted, matrix.rows - 1);
    const { style, classList } = this.cross;
    style.setProperty('--row', String(row / matrix.rows));
    style.setProperty('--size', String(1 / matrix.rows));
    style.setProperty('--column', String((column ?? 0) / matrix.columns));
    style.setProperty('--width', String(1 / matrix.columns));
    classList.toggle('with-column', column !== null);
    if (frame.input.picture !== null) this.showPicture(row, column);
    else this.showTokens(row, column);
    fill(this.readout, this.reading(row, column));
  }

  reading(row: number, column: number | null): string {
    return reading(this.options, row, column);
  }

  private frame(): HTMLElement {
    const props = {
      class: 'matrix-frame',
      tabindex: 0,
      role: 'img',
      'aria-label': description(this.options),
      on: { keydown: (event: KeyboardEvent) => this.keyPressed(event) },
    };
    return h('div', props, this.matrix, this.cross);
  }

  private csv(): HTMLElement {
    return csvButton(`${this.options.run.activation}, ${this.options.name}`, () =>
      mapTable(this.options),
    );
  }

  private showPicture(row: number, column: number | null): void {
    const { matrix, frame, look } = this.options;
    const { picture } = frame.input;
    if (picture === null || !drawPicture(this.picture, picture, this.scale)) return;
    const cells = Array.from({ length: matrix.columns }, (_, i) => ({
      place: keyPlace(frame, i),
      weight: matrix.weights[row * matrix.columns + i],
    }));
    const overlay = {
      patch: frame.patch,
      cells: cells.flatMap(({ place, weight }) => (place === null ? [] : [{ place, weight }])),
      query: queryPlace(frame, row),
      key: column === null ? null : keyPlace(frame, column),
      dimmed: frame.layer.kind === 'window',
    };
    drawOverlay(this.picture, this.scale, overlay, look);
  }

  private showTokens(row: number, column: number | null): void {
    const { matrix, frame, look } = this.options;
    const { prefix } = frame.layer;
    const tokenOf = (index: number) => (index < prefix ? null : index - prefix);
    fillTokens(this.tokens, frame.input.tokens ?? [], {
      row: tokenOf(row),
      column: column === null ? null : tokenOf(column),
      weight: (token) => matrix.weights[row * matrix.columns + token + prefix] ?? 0,
      look,
    });
  }

  private listen(frame: HTMLElement): void {
    const { onSpot, onLeave, matrix, frame: meaning } = this.options;
    const { matrix: canvas, picture: image, tokens } = this;
    frame.addEventListener('pointermove', (event) =>
      onSpot(spotInMatrix(event, canvas, matrix), false),
    );
    frame.addEventListener('click', (event) =>
      onSpot({ ...spotInMatrix(event, canvas, matrix), column: null }, true),
    );
    const { picture } = meaning.input;
    if (picture !== null) {
      const point = (event: MouseEvent, pinned: boolean) => {
        const spot = spotInPicture(event, image, picture, meaning);
        if (spot !== null) onSpot(spot, pinned);
      };
      image.addEventListener('pointermove', (event) => point(event, false));
      image.addEventListener('click', (event) => point(event, true));
    }
    tokens.addEventListener('pointerover', (event) => this.tokenPointed(event, false));
    tokens.addEventListener('click', (event) => this.tokenPointed(event, true));
    for (const element of [frame, image, tokens]) element.addEventListener('pointerleave', onLeave);
  }

  private tokenPointed(event: Event, pinned: boolean): void {
    const token = event.target instanceof HTMLElement ? event.target.dataset.token : undefined;
    if (token === undefined) return;
    const row = Number(token) + this.options.frame.layer.prefix;
    this.options.onSpot({ row, column: null }, pinned);
  }

  private keyPressed(event: KeyboardEvent): void {
    const spot = spotByKey(event.key, this.keyed, this.options.matrix);
    if (spot === null) return;
    event.preventDefault();
    this.keyed = spot;
    this.options.onSpot(spot, false);
  }
}
