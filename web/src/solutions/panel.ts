// The solution of one run as three maps: what is exact, what the model says, in the
// same colours, and the error.
import { fill, h } from '../dom';
import { csvButton } from '../download';
import { diverging, gradient, sequential, sequentialGradient, type Rgb } from '../maps/colour';
import { formula } from '../math';
import type { Run, Solution, SolutionAxis } from '../model/document';
import { significant } from '../text/format';
import type { Shade, Styles } from '../view/palette';
import { swatch } from '../view/swatch';
import { reading, solutionTable, summary, type Fields } from './fields';

export interface PanelOptions {
  run: Run;
  solution: Solution;
  fields: Fields;
  largest: number; // error at the end of the palette
  shade: Shade;
  styles: Styles;
}

const notFinite: Rgb = [128, 128, 128];

// One pixel a point, with the first row below, where the origin of a plot is.
function draw(
  canvas: HTMLCanvasElement,
  { columns, rows }: Fields,
  values: Float64Array,
  colour: (value: number) => Rgb,
): void {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d');
  if (context === null) throw new Error('[solutions] the browser has no canvas');
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; ++row) {
    for (let column = 0; column < columns; ++column) {
      const value = values[row * columns + column];
      const [r, g, b] = Number.isNaN(value) ? notFinite : colour(value);
      image.data.set([r, g, b, 255], 4 * ((rows - 1 - row) * columns + column));
    }
  }
  context.putImageData(image, 0, 0);
}

function ends({ values }: SolutionAxis): [string, string] {
  return [significant(values[0]), significant(values[values.length - 1])];
}

function colourBar(background: string, ticks: number[]): HTMLElement {
  return h(
    'div',
    { class: 'colour-bar' },
    h('div', { class: 'gradient', style: `background: ${background}` }),
    h(
      'div',
      { class: 'ticks' },
      ticks.map((value) => h('span', null, significant(value, 2))),
    ),
  );
}

export class SolutionPanel {
  readonly element: HTMLElement;
  private readonly readout = h('p', { class: 'readout' });

  constructor(private readonly options: PanelOptions) {
    const { run, styles, solution, fields, largest, shade } = options;
    const { low, high } = fields;
    const share = (value: number) => (high > low ? (value - low) / (high - low) : 0.5);
    const size = (value: number) => diverging(largest > 0 ? value / largest : 0, shade);
    const seed = h('span', { class: 'seed' }, `seed ${run.seed}`);
    const name = [swatch(styles.of(run.activation)), formula(run.activation), seed];
    const values = colourBar(sequentialGradient(), [low, (low + high) / 2, high]);
    const same = colourBar(sequentialGradient(), [low, (low + high) / 2, high]);
    const errors = colourBar(gradient(shade), [-largest, 0, largest]);
    const csv = csvButton(`solution of ${run.activation}, seed ${run.seed}`, () =>
      solutionTable(run, solution, fields),
    );
    this.element = h(
      'figure',
      { class: 'solution' },
      h('div', { class: 'card-header' }, h('h3', null, h('span', { class: 'name' }, name)), csv),
      h(
        'div',
        { class: 'solution-maps' },
        this.map('Solution', fields.exact, (value) => sequential(share(value)), values),
        this.map('Prediction', fields.predicted, (value) => sequential(share(value)), same),
        this.map('Error', fields.error, size, errors),
      ),
      this.readout,
    );
    this.rest();
  }

  private map(
    title: string,
    values: Float64Array,
    colour: (value: number) => Rgb,
    bar: HTMLElement,
  ): HTMLElement {
    const { run, solution, fields } = this.options;
    const { columns, rows } = solution;
    const canvas = h('canvas', {
      class: 'field',
      role: 'img',
      'aria-label': `${title} of ${run.activation}, seed ${run.seed}, over ${columns.name} and ${rows.name}. ${summary(solution, fields)}`,
      on: {
        pointermove: (event) => this.pointed(canvas, event),
        pointerleave: () => this.rest(),
      },
    });
    draw(canvas, fields, values, colour);
    const [left, right] = ends(columns);
    const [below, above] = ends(rows);
    return h(
      'div',
      { class: 'field-column' },
      h('h4', null, title),
      h(
        'div',
        { class: 'field-frame' },
        h(
          'div',
          { class: 'field-rows', 'aria-hidden': 'true' },
          h('span', null, above),
          h('span', { class: 'axis-name' }, rows.name),
          h('span', null, below),
        ),
        canvas,
        h(
          'div',
          { class: 'field-columns', 'aria-hidden': 'true' },
          h('span', null, left),
          h('span', { class: 'axis-name' }, columns.name),
          h('span', null, right),
        ),
      ),
      bar,
    );
  }

  private pointed(canvas: HTMLCanvasElement, event: PointerEvent): void {
    const { solution, fields } = this.options;
    const box = canvas.getBoundingClientRect();
    const at = (share: number, count: number) =>
      Math.min(Math.max(Math.floor(share * count), 0), count - 1);
    const column = at((event.clientX - box.left) / box.width, fields.columns);
    const row = fields.rows - 1 - at((event.clientY - box.top) / box.height, fields.rows);
    fill(this.readout, reading(solution, fields, row * fields.columns + column));
  }

  // Nobody points.
  private rest(): void {
    fill(this.readout, summary(this.options.solution, this.options.fields));
  }
}
