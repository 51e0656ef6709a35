// Values against the number of tokens, which is on a logarithmic axis as values are
// unless they are linear, or against time, both linear; and dotted what they are held
// against, where there is such a thing.
import type { ChartData } from '../charts/data';
import { Plot, type SeriesLook } from '../charts/plot';
import { summaryTextOf } from '../charts/summary';
import { Tooltip } from '../charts/tooltip';
import { fill, h } from '../dom';
import { watchVisibility } from '../lazy';
import { integer, significant } from '../text/format';
import { pretty } from '../text/pretty';
import { choose } from '../view/controls';
import { formula } from '../math';
import { lineStyle, Styles } from '../view/palette';
import { swatch } from '../view/swatch';
import type { Theme } from '../theme';
import { boundName, lengthData, type LengthLine, type LengthPanel } from './length-lines';

export class LengthChart {
  readonly element: HTMLElement;
  private readonly frame = h('div', { class: 'frame', role: 'img' });
  private readonly key = h('ul', { class: 'key' });
  private readonly tooltip: Tooltip;
  private plot: Plot | null = null;
  private panel: LengthPanel;
  private visible = false;

  constructor(
    private readonly theme: Theme,
    panels: LengthPanel[],
    label: string, // of the choice between them
    private readonly styles = new Styles(),
  ) {
    this.tooltip = new Tooltip(styles);
    this.panel = panels[0];
    const options = panels.map((panel) => ({ value: panel, text: pretty(panel.title) }));
    const choice =
      panels.length > 1
        ? choose(label, options, this.panel, (panel) => this.choose(panel))
        : h('p', { class: 'about' }, pretty(this.panel.title));
    this.element = h('div', { class: 'length-chart' }, choice, this.frame, this.key);
    watchVisibility(this.element, (visible) => {
      this.visible = visible;
      if (visible && this.plot === null) this.draw();
    });
    theme.subscribe(() => this.visible && this.draw());
    new ResizeObserver(
      () => this.frame.clientWidth > 0 && this.plot?.resize(this.frame.clientWidth, 280),
    ).observe(this.frame);
  }

  private choose(panel: LengthPanel): void {
    this.panel = panel;
    this.draw();
  }

  private draw(): void {
    const { lines, time = false } = this.panel;
    const data = lengthData(lines);
    const { x } = data;
    this.plot?.destroy();
    fill(this.frame);
    this.frame.setAttribute(
      'aria-label',
      summaryTextOf(
        pretty(this.panel.title),
        lines.map((line) => [line.name, [...line.points.values()].map((point) => point.value)]),
      ),
    );
    this.plot = new Plot(this.frame, data, {
      width: this.frame.clientWidth,
      height: 280,
      log: !time && this.panel.linear !== true,
      logX: !time,
      spanGaps: time,
      compact: false,
      ink: this.theme.ink(),
      references: [],
      marks: [],
      xText: (value) => integer(value),
      xName: time ? 'processor time, seconds' : (this.panel.axis ?? 'N, tokens'),
      xTicks: !time && x.length <= 12 ? x : undefined,
      range: () => (time ? [0, x[x.length - 1] * 1.03] : [x[0] / 1.15, x[x.length - 1] * 1.15]),
      look: (series) => this.look(series.activation),
      onCursor: (index) => this.cursorAt(index, data),
      onSelect: () => {},
      onReset: () => {},
    });
    this.plot.over.append(this.tooltip.element);
    this.fillKey(lines);
  }

  private look(name: string): SeriesLook {
    if (name === boundName) return { colour: this.theme.ink().muted, dash: [2, 3] };
    const style = this.styles.of(name);
    return { colour: this.theme.colour(style.colour), dash: style.dash };
  }

  private xTitle(x: number): string {
    if (this.panel.time) return `${significant(x)} s`;
    const { axis } = this.panel;
    return axis === undefined ? `N = ${integer(x)}` : `${axis}: ${integer(x)}`;
  }

  private cursorAt(index: number | null, data: ChartData): void {
    if (index === null || this.plot === null) return this.tooltip.hide();
    this.tooltip.show(
      this.xTitle(data.x[index]),
      data.readout(index),
      this.plot.left(index),
      this.plot.over.clientWidth,
    );
  }

  private fillKey(lines: LengthLine[]): void {
    const items = lines.map(({ name }) =>
      h('li', null, swatch(this.styles.of(name)), ' ', formulaOrText(name)),
    );
    const held = lines.some((line) =>
      [...line.points.values()].some((point) => point.expected !== null),
    );
    const dotted = h(
      'li',
      null,
      swatch({ ...lineStyle(0), dash: [2, 3] }),
      this.panel.time
        ? ' dotted: softmax at its end, less half a point'
        : ' dotted: what was expected, or the bound',
    );
    fill(this.key, items, held ? dotted : null);
  }
}

function formulaOrText(name: string): HTMLElement {
  // A formula, perhaps with how it was computed.
  const comma = name.indexOf(', ');
  const head = comma < 0 ? name : name.slice(0, comma);
  if (!/^[x0-9]/.test(head)) return h('span', null, pretty(name));
  return h('span', null, formula(head), name.slice(head.length));
}
