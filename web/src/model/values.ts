// Values of the document as C++ writes them. Whatever has the wrong type reads
// as absent, so that one bad field costs that field and not the page.

export type Fields = Record<string, unknown>;

export function fields(value: unknown): Fields {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Fields) : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

// Numbers that are not finite are the strings nan, inf and -inf. NaN stands for
// whatever is no number.
export function number(value: unknown): number {
  if (typeof value === 'number') return value;
  if (value === 'inf') return Infinity;
  if (value === '-inf') return -Infinity;
  return NaN;
}

export function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : number(value);
}

// As long as `length`, which is that of the array it stands beside: what is
// missing is NaN.
export function numbers(value: unknown, length?: number): Float64Array {
  const source = list(value);
  const result = new Float64Array(length ?? source.length).fill(NaN);
  const count = Math.min(result.length, source.length);
  for (let i = 0; i < count; ++i) result[i] = number(source[i]);
  return result;
}

export function texts(value: unknown): string[] {
  return list(value).map(text);
}
