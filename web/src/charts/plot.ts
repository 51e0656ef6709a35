// One uPlot: data, axes and what the cursor does. Everything around it is card.ts.
import uPlot from 'uplot';
import type { Value } from '../curves/curve';
import { tick } from '../text/format';
import type { Ink } from '../theme';
import type { ChartData, Series } from './data';
import type { Range } from './group';
import { drawMarks, drawReferences, drawWhiskers, type Mark, type Reference } from './overlay';
import { linearRange, linearTicks, logRange, logTicks } from './scale';

export interface SeriesLook {
  colour: string;
  dash: number[];
}

export interface PlotOptions {
  width: number;
  height: number;
  log: boolean;
  logX?: boolean;
  spanGaps?: boolean; // lines whose points are at different x
  compact: boolean;
  ink: Ink;
  references: Reference[];
  marks: Mark[];
  xName: string;
  xTicks?: number[]; // instead of round numbers
  xText: (value: number) => string;
  range(): Range;
  extent?: () => Range | null; // of y, where charts share it
  look(series: Series): SeriesLook;
  onCursor(index: number | null): void;
  onSelect(from: number, to: number): void;
  onReset(): void;
}

const font = '12px system-ui, -apple-system, "Segoe UI", sans-serif';

// A logarithm has no place for zero and below.
function drawable(values: Value[], log: boolean): Value[] {
  return log ? values.map((value) => (value !== null && value > 0 ? value : null)) : values;
}

function columns(data: ChartData, log: boolean): uPlot.AlignedData {
  return [
    data.x,
    ...data.series.map((series) => drawable(series.values, log)),
  ] as uPlot.AlignedData;
}

function yRange(options: PlotOptions, low: number | null, high: number | null): Range {
  const values = options.references.map((reference) => reference.value);
  const shared = options.extent?.() ?? null;
  if (shared !== null) values.push(...shared);
  else if (low !== null && high !== null) values.push(low, high);
  const usable = values.filter((value) => Number.isFinite(value) && (!options.log || value > 0));
  if (usable.length === 0) return options.log ? [0.1, 10] : [0, 1];
  const range = options.log ? logRange : linearRange;
  return range(Math.min(...usable), Math.max(...usable));
}

function seriesOptions(series: Series, options: PlotOptions, marked: boolean): uPlot.Series {
  const { colour, dash } = options.look(series);
  if (series.role === 'edge')
    return { label: series.label, stroke: 'transparent', width: 0, points: { show: false } };
  const width = series.role === 'thin' ? 1.25 : 2;
  return {
    label: series.label,
    stroke: colour,
    width,
    dash,
    spanGaps: options.spanGaps ?? false,
    points: { show: marked && series.role === 'line', size: 6, fill: colour, stroke: colour },
  };
}

function axisLook(options: PlotOptions): uPlot.Axis {
  const { grid, muted } = options.ink;
  return {
    font,
    stroke: muted,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1, size: 4 },
    gap: 4,
  };
}

function axes(options: PlotOptions): uPlot.Axis[] {
  const own = (low: number, high: number) => options.xTicks ?? logTicks(low, high);
  const xTicks: uPlot.Axis = options.logX
    ? { splits: (_u, _axis, low, high) => own(low, high), filter: (_u, splits) => splits }
    : {};
  const name: uPlot.Axis = options.compact
    ? {}
    : { label: options.xName, labelFont: font, labelSize: 18, labelGap: 0 };
  const ticks = options.log ? logTicks : linearTicks;
  return [
    {
      ...axisLook(options),
      ...xTicks,
      ...name,
      size: options.compact ? 28 : 26,
      space: 70,
      values: (_u, splits) => splits.map((value) => (value === null ? '' : options.xText(value))),
    },
    {
      ...axisLook(options),
      size: (_u, values) => 14 + 6.6 * Math.max(3, ...(values ?? []).map((value) => value.length)),
      splits: (_u, _axis, low, high) => ticks(low, high),
      filter: (_u, splits) => splits,
      values: (_u, splits) => splits.map(tick),
    },
  ];
}

function bandFills(data: ChartData, options: PlotOptions): uPlot.Band[] {
  const alpha = data.bands.length > 3 ? '20' : '2e'; // so that they do not add up to mud
  return data.bands.map(({ high, low }) => {
    const { colour } = options.look(data.series[high]);
    return { series: [high + 1, low + 1], fill: colour + alpha };
  });
}

function cursor(options: PlotOptions): uPlot.Cursor {
  return {
    y: false,
    drag: { x: true, y: false, setScale: false },
    points: { size: 7, width: 2 },
    bind: {
      dblclick: () => () => {
        options.onReset();
        return null;
      },
    },
  };
}

function selected(u: uPlot, options: PlotOptions): void {
  const { left, width } = u.select;
  if (width > 3) options.onSelect(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

// Fingers read values too; sideways only, so that the page still scrolls.
function followTouches(u: uPlot): void {
  const follow = (event: TouchEvent) => {
    const touch = event.touches[0];
    const box = u.over.getBoundingClientRect();
    u.setCursor({ left: touch.clientX - box.left, top: touch.clientY - box.top });
  };
  u.over.addEventListener('touchstart', follow, { passive: true });
  u.over.addEventListener('touchmove', follow, { passive: true });
}

export class Plot {
  private readonly u: uPlot;

  constructor(
    parent: HTMLElement,
    private data: ChartData,
    private readonly options: PlotOptions,
  ) {
    const { width, height, log, logX } = options;
    const settings: uPlot.Options = {
      width,
      height,
      padding: [10, 24, 0, 0],
      legend: { show: false },
      cursor: cursor(options),
      scales: {
        x: { time: false, distr: logX ? 3 : 1, range: () => options.range() },
        y: { distr: log ? 3 : 1, range: (_u, low, high) => yRange(options, low, high) },
      },
      axes: axes(options),
      series: [{}, ...data.series.map((series) => seriesOptions(series, options, data.marked))],
      bands: bandFills(data, options),
      hooks: {
        draw: [(u) => this.drawOverlays(u)],
        setCursor: [(u) => options.onCursor(u.cursor.idx ?? null)],
        setSelect: [(u) => selected(u, options)],
      },
    };
    this.u = new uPlot(settings, columns(data, log), parent);
    followTouches(this.u);
  }

  private drawOverlays(u: uPlot): void {
    const { references, marks, ink, look } = this.options;
    drawReferences(u, references, ink);
    if (this.data.marked) drawWhiskers(u, this.data, (series) => look(series).colour);
    drawMarks(u, marks);
  }

  // Of the same series, with other values.
  setData(data: ChartData): void {
    this.data = data;
    this.u.setData(columns(data, this.options.log));
  }

  resize(width: number, height: number): void {
    this.u.setSize({ width, height });
  }

  // Puts the cursor at x, without telling anyone, and says which point that is.
  showCursor(x: number | null): number | null {
    const [low, high] = this.options.range();
    const left = x === null || x < low || x > high ? -10 : this.u.valToPos(x, 'x');
    this.u.setCursor({ left, top: left < 0 ? -10 : 10 }, false);
    return this.u.cursor.idx ?? null;
  }

  cursorIndex(): number | null {
    return this.u.cursor.idx ?? null;
  }

  // Where the tooltip goes: pixels from the left edge of the plotting area.
  left(index: number): number {
    return this.u.valToPos(this.data.x[index], 'x');
  }

  get over(): HTMLElement {
    return this.u.over;
  }

  destroy(): void {
    this.u.destroy();
  }
}
