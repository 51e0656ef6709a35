// How it started: the norms of the heads before the first step, where scores were
// scaled to softmax's norm. A row a layer; the heads are behind it.
import { fill, h, refill, scrollable, type Child } from '../dom';
import { csvButton } from '../download';
import { formula } from '../math';
import type { HeadStart } from '../model/document';
import { integer, plural, significant } from '../text/format';
import { visibleRuns, type Context } from '../view/context';
import { swatch } from '../view/swatch';
import { layerName } from './layer-names';
import {
  rangeText,
  startedRuns,
  startGroups,
  startSentence,
  startTable,
  type StartedRun,
  type StartGroup,
} from './start-rows';
import { startScale, startStrip } from './start-strip';

const columns = ['as drawn', 'at the start', 'softmax’s', 'scores scaled by'];
const keys: (keyof HeadStart)[] = ['before', 'after', 'softmax', 'gain'];

function numberCells(heads: HeadStart[]): HTMLElement[] {
  return keys.map((key) => h('td', { class: 'number' }, rangeText(heads.map((head) => head[key]))));
}

function table(caption: string, titles: Child[], bodies: HTMLElement[]): HTMLElement {
  const numbers = columns.map((title) => h('th', { scope: 'col', class: 'number' }, title));
  return h(
    'table',
    { class: 'data' },
    h('caption', { class: 'sr-only' }, caption),
    h(
      'thead',
      null,
      h(
        'tr',
        null,
        titles.map((title) => h('th', { scope: 'col' }, title)),
        numbers,
      ),
    ),
    bodies,
  );
}

export class StartPanel {
  readonly element: HTMLElement;
  private readonly sentence = h('p', { class: 'lead' });
  private readonly strips = h('div');
  private readonly notes = h('p', { class: 'notes' });
  private readonly numbers = h('div');
  private readonly heads = h(
    'details',
    { class: 'numbers' },
    h('summary', null, 'Numbers by head'),
    this.numbers,
  );
  private groups: StartGroup[] = [];

  constructor(private readonly context: Context) {
    const title = 'How it started';
    this.element = h(
      'div',
      { class: 'panel', id: 'start', role: 'group', 'aria-labelledby': 'start-title' },
      h(
        'div',
        { class: 'section-header' },
        h('h3', { id: 'start-title' }, title),
        csvButton(title, () => startTable(this.runs())),
      ),
      this.sentence,
      this.strips,
      h('div', { class: 'table-foot' }, this.notes),
      this.heads,
    );
    this.heads.addEventListener('toggle', () => this.fillHeads());
  }

  update(): void {
    const runs = this.runs();
    this.element.hidden = runs.length === 0;
    if (runs.length === 0) return;
    this.groups = startGroups(runs, this.context.store.get().seeds);
    const all = this.groups.flatMap((group) => group.layers.flat());
    const scale = startScale(all);
    fill(this.sentence, startSentence(runs));
    const bodies = this.groups.map((group) =>
      this.body(group, (heads, layer) => [
        h(
          'tr',
          null,
          h('th', { scope: 'row' }, layerName(runs, layer)),
          h('td', null, startStrip(heads, scale, this.context.styles.of(group.activation).colour)),
          numberCells(heads),
        ),
      ]),
    );
    const axis =
      scale === null ? '‖A‖' : `‖A‖, ${significant(scale.low)} to ${significant(scale.high)}`;
    refill(
      this.strips,
      scrollable('How it started', table('How it started, by layer', ['layer', axis], bodies)),
    );
    fill(
      this.notes,
      'Frobenius norms of the attention matrix on the first batch, means over it; of causal attention those of its last rows. A dot is a head, on a logarithmic axis: ○ as drawn, ● at the start, | softmax’s. Seeds are averaged unless each is shown.',
    );
    this.fillHeads();
  }

  private runs(): StartedRun[] {
    return startedRuns(visibleRuns(this.context));
  }

  // The rows of a group below its name.
  private body(
    group: StartGroup,
    rows: (heads: HeadStart[], layer: number) => HTMLElement[],
  ): HTMLElement {
    const { activation, factor, seeds } = group;
    const isOneFactor = this.groups.every((other) => other.factor === factor);
    const parts = [
      seeds.length === 1 ? `seed ${integer(seeds[0])}` : plural(seeds.length, 'seed'),
      ...(isOneFactor ? [] : [`factor ${significant(factor)}`]),
    ];
    const name = h(
      'span',
      { class: 'name' },
      swatch(this.context.styles.of(activation)),
      formula(activation),
      h('span', { class: 'spread' }, parts.join(', ')),
    );
    return h(
      'tbody',
      null,
      h('tr', null, h('th', { scope: 'rowgroup', colspan: columns.length + 2 }, name)),
      group.layers.flatMap(rows),
    );
  }

  // There may be thousands: only when somebody looks.
  private fillHeads(): void {
    if (!this.heads.open) return;
    const bodies = this.groups.map((group) =>
      this.body(group, (heads, layer) =>
        heads.map((head, i) =>
          h(
            'tr',
            null,
            h('th', { scope: 'row' }, layer + 1),
            h('td', null, i + 1),
            numberCells([head]),
          ),
        ),
      ),
    );
    const region = scrollable(
      'Numbers by head',
      table('How it started, by head', ['layer', 'head'], bodies),
    );
    region.classList.add('tall');
    refill(this.numbers, region);
  }
}
