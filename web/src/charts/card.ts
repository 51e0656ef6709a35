// A chart with its title, its buttons, what the cursor reads, and its numbers as
// a table. It is drawn when it comes into view and redrawn when something that it
// shows has changed.
import { curveOf } from '../curves/metrics';
import { fill, h } from '../dom';
import { unwatchVisibility, watchVisibility } from '../lazy';
import { visibleRuns, type Context } from '../view/context';
import { chartData, type ChartData, type Entry } from './data';
import { chartTable, numbersTable } from './export';
import type { ChartGroup, GroupMember } from './group';
import { chartKeys } from './keys';
import { chartNotes } from './notes';
import { divergenceMarks, type Mark, type Reference } from './overlay';
import { Plot, type SeriesLook } from './plot';
import type { Axis, ChartSpec } from './spec';
import { summaryRows, summaryText } from './summary';
import { chartTools, type Tools } from './tools';
import { readoutText, Tooltip } from './tooltip';

const heights = { normal: 260, compact: 150 };

export class ChartCard implements GroupMember {
  readonly element: HTMLElement;
  private readonly frame: HTMLElement;
  private readonly notes = h('p', { class: 'notes' });
  private readonly numbers = h('details', { class: 'numbers' }, h('summary', null, 'Numbers'));
  private readonly spoken = h('span', { class: 'sr-only', 'aria-live': 'polite' });
  private readonly tooltip: Tooltip;
  private readonly tools: Tools;
  private readonly resizer: ResizeObserver;
  private plot: Plot | null = null;
  private data: ChartData | null = null;
  private entries: Entry[] = [];
  private signature = '';
  private visible = false;
  private stale = true;
  private log: boolean;

  constructor(
    private readonly context: Context,
    private readonly group: ChartGroup,
    private readonly axis: () => Axis,
    private readonly spec: ChartSpec,
  ) {
    this.log = spec.log;
    this.tooltip = new Tooltip(context.styles);
    this.tools = chartTools({
      what: spec.title,
      compact: spec.compact,
      group,
      isLog: () => this.log,
      setLog: (log) => this.setLog(log),
      table: () => chartTable(this.spec, this.collect(), this.context.store.get().axis),
    });
    this.frame = h('div', {
      class: 'frame',
      role: 'group',
      tabindex: 0,
      'aria-roledescription': 'chart',
      on: { keydown: (event) => this.keyPressed(event), blur: () => this.leave() },
    });
    this.element = this.build();
    this.numbers.addEventListener('toggle', () => this.fillNumbers());
    watchVisibility(this.element, (visible) => this.visibilityChanged(visible));
    this.resizer = new ResizeObserver(() => this.resized());
    this.resizer.observe(this.frame);
    group.add(this);
  }

  // Something that it shows may have changed.
  update(): void {
    this.stale = true;
    if (this.visible) this.refresh();
  }

  // Colours have changed: everything is drawn again.
  restyle(): void {
    this.signature = '';
    this.update();
  }

  rangeChanged(): void {
    this.tools.refresh();
    this.tooltip.hide();
    this.update();
  }

  cursorMoved(x: number | null): void {
    this.tooltip.hide();
    this.plot?.showCursor(x);
  }

  remove(): void {
    unwatchVisibility(this.element);
    this.resizer.disconnect();
    this.group.remove(this);
    this.plot?.destroy();
    this.element.remove();
  }

  private build(): HTMLElement {
    const { spec } = this;
    const titleId = `${spec.id}-title`;
    const heading = h('h3', { id: titleId }, spec.heading?.() ?? spec.title);
    const header = h('div', { class: 'card-header' }, heading, this.tools.element);
    const about = spec.about === '' ? null : h('p', { class: 'about' }, spec.about);
    return h(
      'figure',
      { class: spec.compact ? 'card compact' : 'card', id: spec.id, 'aria-labelledby': titleId },
      header,
      about,
      this.frame,
      this.spoken,
      this.notes,
      spec.compact ? null : this.numbers,
    );
  }

  private visibilityChanged(visible: boolean): void {
    this.visible = visible;
    if (visible && this.stale) this.refresh();
  }

  private collect(): Entry[] {
    const { axis } = this.context.store.get();
    const pick = this.spec.pick();
    return visibleRuns(this.context).flatMap((run) => {
      const curve = curveOf(run, pick, axis);
      return curve === null ? [] : [{ run, curve }];
    });
  }

  private refresh(): void {
    this.stale = false;
    this.entries = this.collect();
    const { seeds } = this.context.store.get();
    this.data = chartData(this.entries, seeds, this.group.isZoomed() ? this.group.visible() : null);
    this.draw(this.data);
    const rows = summaryRows(this.entries);
    this.frame.setAttribute('aria-label', summaryText(this.spec.title, this.axis().name, rows));
    const notes = chartNotes({
      entries: this.entries,
      rows,
      data: this.data,
      log: this.log,
      references: this.spec.references(),
    });
    fill(this.notes, notes.join(' '));
    this.notes.hidden = notes.length === 0;
    this.fillNumbers();
    this.tools.refresh();
  }

  private draw(data: ChartData): void {
    const references = this.spec.references();
    const marks = divergenceMarks(this.entries, (activation) => this.look(activation).colour);
    const signature = JSON.stringify([
      this.log,
      data.marked,
      this.axis().name,
      references,
      marks,
      data.series.map((series) => [series.label, series.role]),
    ]);
    if (this.plot !== null && signature === this.signature) {
      this.plot.setData(data);
      return;
    }
    this.signature = signature;
    this.plot?.destroy();
    this.tooltip.hide();
    this.plot = data.series.length === 0 ? null : this.newPlot(data, references, marks);
    if (this.plot === null)
      fill(this.frame, h('p', { class: 'empty' }, 'Nothing recorded for what is chosen.'));
  }

  private newPlot(data: ChartData, references: Reference[], marks: Mark[]): Plot {
    fill(this.frame);
    const plot = new Plot(this.frame, data, {
      width: this.frame.clientWidth,
      height: this.height(),
      log: this.log,
      compact: this.spec.compact,
      ink: this.context.theme.ink(),
      references,
      marks,
      xName: this.axis().name,
      xText: (value) => this.axis().text(value),
      range: () => this.group.visible(),
      extent: this.spec.extent,
      look: (series) => this.look(series.activation),
      onCursor: (index) => this.cursorAt(index),
      onSelect: (from, to) => this.group.zoom(from, to),
      onReset: () => this.group.reset(),
    });
    plot.over.append(this.tooltip.element);
    return plot;
  }

  private look(activation: string): SeriesLook {
    const style = this.context.styles.of(activation);
    return { colour: this.context.theme.colour(style.colour), dash: style.dash };
  }

  private height(): number {
    return this.spec.compact ? heights.compact : heights.normal;
  }

  private resized(): void {
    const width = this.frame.clientWidth;
    if (width > 0) this.plot?.resize(width, this.height());
  }

  private setLog(log: boolean): void {
    this.log = log;
    this.update();
  }

  private cursorAt(index: number | null): void {
    if (this.plot === null || this.data === null) return;
    if (index === null) return this.leave();
    const x = this.data.x[index];
    this.tooltip.show(
      this.axis().title(x),
      this.data.readout(index),
      this.plot.left(index),
      this.plot.over.clientWidth,
    );
    this.group.moveCursor(x, this);
  }

  private leave(): void {
    this.tooltip.hide();
    this.group.moveCursor(null, this);
  }

  private keyPressed(event: KeyboardEvent): void {
    if (this.plot === null || this.data === null) return;
    const target = chartKeys(event, {
      group: this.group,
      x: this.data.x,
      index: this.plot.cursorIndex(),
    });
    if (target === null) return;
    const index = this.plot.showCursor(this.data.x[target]);
    this.cursorAt(index);
    if (index !== null)
      this.spoken.textContent = readoutText(
        this.axis().title(this.data.x[index]),
        this.data.readout(index),
      );
  }

  private fillNumbers(): void {
    if (!this.numbers.open) return;
    const table = numbersTable(this.spec.title, summaryRows(this.entries));
    fill(this.numbers, h('summary', null, 'Numbers'), table);
  }
}
