// Tables as CSV (RFC 4180) that a spreadsheet cannot be tricked with.

export type Cell = string | number | null;

export interface Table {
  name: string; // of the file, without its ending
  columns: string[];
  rows: Cell[][];
}

// A table of things, a column a function of them.
export function tableOf<T>(
  name: string,
  things: readonly T[],
  columns: [string, (thing: T) => Cell][],
): Table {
  return {
    name,
    columns: columns.map(([title]) => title),
    rows: things.map((thing) => columns.map(([, value]) => value(thing))),
  };
}

function numberCell(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? 'inf' : '-inf';
}

// Spreadsheets run cells that begin with these. The apostrophe makes them text.
function harmless(text: string): string {
  return /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
}

function textCell(text: string): string {
  const safe = harmless(text);
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function cell(value: Cell): string {
  if (value === null) return '';
  return typeof value === 'number' ? numberCell(value) : textCell(value);
}

export function csvText(table: Table): string {
  const lines = [table.columns.map(textCell), ...table.rows.map((row) => row.map(cell))];
  return lines.map((line) => line.join(',') + '\r\n').join('');
}

// A name that every file system takes.
export function fileName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[-.]+|[-.]+$/g, '');
  return `${plain.slice(0, 80) || 'data'}.csv`;
}
