// What was searched before the runs of a comparison: grid.json, as C++ writes it.
import { withVariant } from '../text/variant';
import type { Grid, GridCell, GridRow } from './document';
import { readFigure, readSample } from './read-parts';
import { fields, list, number, text, texts } from './values';

function readCell(value: unknown): GridCell {
  const cell = fields(value);
  return {
    values: texts(cell.values),
    figure: readSample(cell.figure),
    diverged: number(cell.diverged) || 0,
  };
}

function readGridRow(value: unknown): GridRow {
  const row = fields(value);
  return {
    activation: withVariant(text(row.activation), text(row.variant)),
    cells: list(row.cells).map(readCell),
    chosen: number(row.chosen),
  };
}

export function readGrid(value: unknown): Grid {
  const grid = fields(value);
  return {
    task: text(grid.task),
    figure: readFigure(grid.figure),
    validation: number(grid.validation),
    seeds: number(grid.seeds),
    keys: list(grid.axes).map((axis) => text(fields(axis).key)),
    rows: list(grid.rows).map(readGridRow),
  };
}
