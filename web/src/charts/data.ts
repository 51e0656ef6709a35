// Curves of runs as the columns that a chart draws, and what its cursor reads.
import { bandOf, bandOfStretches, type Band } from '../curves/bands';
import { gridOf, onGrid, type Curve, type Grid, type Value } from '../curves/curve';
import type { Run } from '../model/document';

export interface Entry {
  run: Run;
  curve: Curve;
}

export interface Series {
  activation: string;
  label: string;
  role: 'line' | 'thin' | 'edge'; // the edges of a band are not stroked
  values: Value[];
}

export interface ReadoutRow {
  activation: string;
  label: string;
  value: number;
  spread: { low: number; high: number; count: number } | null;
}

export interface ChartData {
  x: number[];
  series: Series[];
  bands: { high: number; low: number; activation: string }[]; // places in series
  marked: boolean; // few points, each a record: draw them as such
  cut: boolean;
  readout(index: number): ReadoutRow[];
}

const fewPoints = 12;
const fewLines = 10;

export function byActivation<T extends { run: Run }>(entries: T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const group = groups.get(entry.run.activation);
    if (group === undefined) groups.set(entry.run.activation, [entry]);
    else group.push(entry);
  }
  return groups;
}

interface Group {
  activation: string;
  runs: Run[];
  lines: Value[][];
  band: Band;
}

function groupsOf(entries: Entry[], grid: Grid): Group[] {
  return [...byActivation(entries)].map(([activation, members]) => {
    const lines = members.map((member) => onGrid(member.curve, grid));
    const band = grid.cut ? bandOfStretches(lines) : bandOf(lines);
    return { activation, runs: members.map((member) => member.run), lines, band };
  });
}

function bandReadout(groups: Group[], index: number): ReadoutRow[] {
  const rows: ReadoutRow[] = [];
  for (const { activation, band, lines } of groups) {
    const value = band.mean[index];
    if (value === null || value === undefined) continue;
    const spread = {
      low: band.low[index] ?? value,
      high: band.high[index] ?? value,
      count: band.count[index],
    };
    rows.push({ activation, label: activation, value, spread: lines.length > 1 ? spread : null });
  }
  return rows;
}

function lineReadout(groups: Group[], index: number): ReadoutRow[] {
  const rows: ReadoutRow[] = [];
  for (const { activation, runs, lines } of groups) {
    lines.forEach((line, i) => {
      const value = line[index];
      if (value !== null && value !== undefined)
        rows.push({
          activation,
          label: `${activation}, seed ${runs[i].seed}`,
          value,
          spread: null,
        });
    });
  }
  return rows;
}

function addBand(data: ChartData, { activation, lines, band }: Group): void {
  if (lines.length > 1) {
    const high = data.series.length;
    data.series.push({
      activation,
      label: `${activation}, largest`,
      role: 'edge',
      values: band.high,
    });
    data.series.push({
      activation,
      label: `${activation}, smallest`,
      role: 'edge',
      values: band.low,
    });
    data.bands.push({ high, low: high + 1, activation });
  }
  data.series.push({ activation, label: activation, role: 'line', values: band.mean });
}

export function chartData(
  entries: Entry[],
  seeds: 'bands' | 'lines',
  range: [number, number] | null,
): ChartData {
  const grid = gridOf(
    entries.map((entry) => entry.curve),
    range,
  );
  const groups = groupsOf(entries, grid);
  const single = seeds === 'lines' && entries.length <= fewLines;
  const readout = (index: number) =>
    single ? lineReadout(groups, index) : bandReadout(groups, index);
  const data: ChartData = {
    x: grid.x,
    series: [],
    bands: [],
    marked: grid.shared && grid.x.length <= fewPoints,
    cut: grid.cut,
    readout,
  };
  for (const group of groups) {
    if (seeds === 'bands') addBand(data, group);
    else {
      group.lines.forEach((values, i) => {
        data.series.push({
          activation: group.activation,
          label: `${group.activation}, seed ${group.runs[i].seed}`,
          role: 'thin',
          values,
        });
      });
    }
  }
  return data;
}
