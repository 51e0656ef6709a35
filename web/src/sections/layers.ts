// The same norm layer by layer: small charts with one y axis.
import { ChartCard } from '../charts/card';
import type { ChartGroup, Range } from '../charts/group';
import { fill, h } from '../dom';
import { taskRuns, visibleRuns, type Context } from '../view/context';
import { choose } from '../view/controls';
import { currentAxis } from './axis';
import { layerName } from './layer-names';
import { pickOf, quantities, type Quantity } from './quantities';
import { references } from './references';

const parameters: Quantity = {
  id: 'parameters',
  title: 'Norm of the parameters of the block',
  tex: '',
  short: '',
  about: '',
};

export class LayerPanel {
  readonly element: HTMLElement;
  private readonly bar = h('div', { class: 'controls' });
  private readonly grid = h('div', { class: 'cards small' });
  private cards: ChartCard[] = [];
  private names: string[] = []; // of the layers that have cards
  private quantity: Quantity = quantities[0];
  private extent: Range | null = null;

  constructor(
    private readonly context: Context,
    private readonly group: ChartGroup,
  ) {
    this.element = h(
      'div',
      { class: 'panel', role: 'group', 'aria-labelledby': 'layers-title' },
      h('h3', { id: 'layers-title' }, 'Layer by layer'),
      this.bar,
      this.grid,
    );
    const options = [...quantities, parameters].map((quantity) => ({
      value: quantity,
      text: quantity.title,
    }));
    fill(
      this.bar,
      choose('Quantity', options, this.quantity, (quantity) => this.choose(quantity)),
    );
  }

  update(): void {
    const count = Math.max(0, ...taskRuns(this.context).map((run) => run.norms.layers.length));
    this.element.hidden = count < 2;
    const names = Array.from({ length: count }, (_, i) => layerName(taskRuns(this.context), i));
    if (names.join('\n') !== this.names.join('\n')) this.build(names);
    this.extent = this.measure(count);
    for (const card of this.cards) card.update();
  }

  restyle(): void {
    for (const card of this.cards) card.restyle();
  }

  private choose(quantity: Quantity): void {
    this.quantity = quantity;
    this.names = [];
    this.update();
  }

  private build(names: string[]): void {
    for (const card of this.cards) card.remove();
    this.names = names;
    this.cards = names.map((name, layer) => this.card(layer, name));
    fill(
      this.grid,
      this.cards.map((card) => card.element),
    );
  }

  private choice(layer: number) {
    const { head, combine, relative } = this.context.store.get();
    return { layer, head, combine, relative };
  }

  private card(layer: number, name: string): ChartCard {
    const { context, quantity } = this;
    return new ChartCard(context, this.group, () => currentAxis(context), {
      id: `layer-${layer + 1}-${quantity.id}`,
      title: `${quantity.title}, layer ${name}`,
      heading: () => [document.createTextNode(`Layer ${name}`)],
      about: '',
      log: true,
      compact: true,
      pick: () => pickOf(quantity.id, this.choice(layer)),
      references: () =>
        references(quantity.id, taskRuns(context), { ...context.store.get(), layer }),
      extent: () => this.extent,
    });
  }

  // The smallest and largest value over all layers, so that charts compare. Not
  // positive ones have no place on the logarithmic axis.
  private measure(count: number): Range | null {
    let low = Infinity;
    let high = -Infinity;
    const runs = visibleRuns(this.context);
    for (let layer = 0; layer < count; ++layer) {
      const pick = pickOf(this.quantity.id, this.choice(layer));
      for (const run of runs) {
        for (const value of pick(run)?.y ?? []) {
          if (!Number.isFinite(value) || value <= 0) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
    }
    return low <= high ? [low, high] : null;
  }
}
