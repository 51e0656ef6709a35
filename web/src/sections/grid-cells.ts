// A search as a table: a row a setting, a column an activation.
import type { Figure, Grid, GridCell } from '../model/document';
import { tableOf, type Table } from '../text/csv';

export interface HeatCell extends GridCell {
  heat: number; // from 0, the worst of its activation, to 1, the best
  chosen: boolean;
}

export interface HeatRow {
  values: string[]; // of the keys
  cells: (HeatCell | null)[]; // null: the setting changes nothing for the activation
}

function merit(cell: GridCell, figure: Figure): number {
  if (cell.figure.count === 0) return NaN;
  return figure === 'accuracy' ? cell.figure.mean : -cell.figure.mean;
}

// Within each activation, because between them the differences are larger.
function heated({ rows, figure }: Grid): HeatCell[][] {
  return rows.map(({ cells, chosen }) => {
    const merits = cells.map((cell) => merit(cell, figure));
    const known = merits.filter(Number.isFinite);
    const low = Math.min(...known);
    const range = Math.max(...known) - low;
    return cells.map((cell, i) => ({
      ...cell,
      heat: Number.isFinite(merits[i]) ? (range > 0 ? (merits[i] - low) / range : 1) : 0,
      chosen: i === chosen,
    }));
  });
}

export function heatRows(grid: Grid): HeatRow[] {
  const columns = heated(grid);
  const key = (cell: GridCell) => JSON.stringify(cell.values);
  const settings = new Map(columns.flat().map((cell) => [key(cell), cell.values]));
  const order = columns.reduce((a, b) => (b.length > a.length ? b : a), []).map(key);
  const names = [...new Set([...order, ...settings.keys()])];
  return names.map((name) => ({
    values: settings.get(name) ?? [],
    cells: columns.map((cells) => cells.find((cell) => key(cell) === name) ?? null),
  }));
}

// What was chosen for an activation: 'train.lr=2e-3'; '' without a search.
export function chosenSetting(grids: Grid[], task: string, activation: string): string {
  const grid = grids.find((candidate) => candidate.task === task);
  const row = grid?.rows.find((candidate) => candidate.activation === activation);
  const cell = row?.cells[row.chosen];
  if (grid === undefined || cell === undefined) return '';
  return grid.keys.map((key, i) => `${key}=${cell.values[i] ?? ''}`).join(', ');
}

export function gridCsv(grid: Grid): Table {
  const entries = grid.rows.flatMap(({ activation, cells, chosen }) =>
    cells.map((cell, i) => ({ activation, cell, chosen: i === chosen })),
  );
  return tableOf(`search-${grid.task}`, entries, [
    ['activation', (entry) => entry.activation],
    ...grid.keys.map((key, i): [string, (entry: (typeof entries)[0]) => string] => [
      key,
      (entry) => entry.cell.values[i] ?? '',
    ]),
    [`validation_${grid.figure}_mean`, ({ cell }) => cell.figure.mean],
    [`validation_${grid.figure}_deviation`, ({ cell }) => cell.figure.deviation],
    ['seeds', ({ cell }) => cell.figure.count],
    ['diverged', ({ cell }) => cell.diverged],
    ['chosen', (entry) => String(entry.chosen)],
  ]);
}
