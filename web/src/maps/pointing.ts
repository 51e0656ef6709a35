// From pointers and keys to places in an attention map.
import type { Picture } from '../model/document';
import { spotAt, type Frame } from './frame';
import type { Matrix } from './matrix';

export interface Spot {
  row: number; // the query
  column: number | null; // the key, if one is meant
  window?: number; // where the query is, if it may be in another one
}

function clamp(value: number, count: number): number {
  return Math.min(count - 1, Math.max(0, Math.floor(value)));
}

// How far across and down the element, from 0 to 1.
function shares(event: MouseEvent, element: Element): [number, number] {
  const box = element.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

export function spotInMatrix(event: MouseEvent, element: Element, matrix: Matrix): Spot {
  const [x, y] = shares(event, element);
  return {
    row: clamp(y * matrix.rows, matrix.rows),
    column: clamp(x * matrix.columns, matrix.columns),
  };
}

// A picture chooses queries, or keys of a class token. Pixels beyond the last whole
// patch belong to it.
export function spotInPicture(
  event: MouseEvent,
  element: Element,
  { width, height }: Picture,
  frame: Frame,
): Spot | null {
  const [x, y] = shares(event, element);
  const { patch, across, down } = frame;
  return spotAt(frame, {
    x: clamp((x * width) / patch, across),
    y: clamp((y * height) / patch, down),
  });
}

const steps: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

// Where an arrow key leads from a spot, or null for other keys.
export function spotByKey(key: string, from: Spot, matrix: Matrix): Spot | null {
  if (!Object.hasOwn(steps, key)) return null;
  const [down, right] = steps[key];
  return {
    row: clamp(from.row + down, matrix.rows),
    column: clamp((from.column ?? 0) + right, matrix.columns),
  };
}
