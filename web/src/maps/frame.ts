// What the rows and columns of an attention map stand for: their names, and where they
// are on the picture.
import type { MapInput, MapLayer, MapWindows } from '../model/document';
import type { Spot } from './pointing';
import { visibleToken } from './text';

// Of a patch, counted from the top left.
export interface Place {
  x: number;
  y: number;
}

export interface Frame {
  layer: MapLayer;
  window: number;
  input: MapInput;
  patch: number; // pixels of its side
  across: number; // patches of the picture, or of the map that windows cut up
  down: number;
}

export function frameOf(layer: MapLayer, window: number, input: MapInput): Frame {
  const { picture } = input;
  const patch = layer.patch ?? picture?.patch ?? 1;
  const { windows } = layer;
  const across = windows?.width ?? Math.floor((picture?.width ?? 0) / patch);
  const down = windows?.height ?? Math.floor((picture?.height ?? 0) / patch);
  return { layer, window, input, patch, across: Math.max(1, across), down: Math.max(1, down) };
}

function filled(length: number, side: number): number {
  return Math.ceil(length / side) * side;
}

export function windowsAcross({ width, side }: MapWindows): number {
  return Math.ceil(width / side);
}

// A token of a window, once the shift is undone; beyond the map is what fills it up.
function placeInWindow(windows: MapWindows, window: number, token: number): Place {
  const { side } = windows;
  const across = windowsAcross(windows);
  const y = Math.floor(window / across) * side + Math.floor(token / side) + windows.down;
  const x = (window % across) * side + (token % side) + windows.right;
  return { x: x % filled(windows.width, side), y: y % filled(windows.height, side) };
}

function placeOf({ layer, window, across, down }: Frame, index: number): Place | null {
  if (layer.kind === 'channel') return null;
  if (layer.windows !== null) {
    const place = placeInWindow(layer.windows, window, index);
    return place.x < across && place.y < down ? place : null;
  }
  const patch = index - layer.prefix;
  return patch < 0 ? null : { x: patch % across, y: Math.floor(patch / across) };
}

// The row of a class token is none of the patches, whatever its number.
export function queryPlace(frame: Frame, row: number): Place | null {
  return frame.layer.kind === 'class' ? null : placeOf(frame, row);
}

export function keyPlace(frame: Frame, column: number): Place | null {
  return placeOf(frame, column);
}

// The query at a place, and the window that it stands in.
export function spotAt({ layer, across }: Frame, { x, y }: Place): Spot | null {
  if (layer.kind === 'channel') return null;
  if (layer.kind === 'class') return { row: 0, column: y * across + x + layer.prefix };
  const { windows } = layer;
  if (windows === null) return { row: y * across + x + layer.prefix, column: null };
  const { side } = windows;
  const height = filled(windows.height, side);
  const width = filled(windows.width, side);
  const down = (y - windows.down + height) % height;
  const right = (x - windows.right + width) % width;
  const window = Math.floor(down / side) * windowsAcross(windows) + Math.floor(right / side);
  return { row: (down % side) * side + (right % side), column: null, window };
}

function placeName(place: Place | null): string {
  return place === null ? 'filling' : `patch ${place.y + 1}, ${place.x + 1}`;
}

function tokenName(frame: Frame, index: number): string {
  const { layer, input } = frame;
  if (layer.kind === 'channel') return `channel ${index + 1}`;
  if (layer.kind === 'window') return placeName(placeOf(frame, index));
  if (index < layer.prefix) return index === 0 ? 'class token' : 'distillation token';
  if (input.picture !== null) return placeName(placeOf(frame, index));
  const number = index - layer.prefix;
  const token = input.tokens?.[number];
  return token === undefined
    ? `token ${number + 1}`
    : `token ${number + 1} “${visibleToken(token)}”`;
}

export function queryName(frame: Frame, row: number): string {
  return frame.layer.kind === 'class' ? 'class token' : tokenName(frame, row);
}

export function keyName(frame: Frame, column: number): string {
  return tokenName(frame, column);
}

// Where nobody points: in the middle of a picture or window, at the end of a text.
export function middleRow(frame: Frame): number {
  const { layer, input, across, down } = frame;
  if (layer.kind === 'channel' || layer.kind === 'class') return 0;
  if (layer.windows !== null) return Math.floor(layer.rows / 2 + layer.windows.side / 2);
  if (input.picture === null) return layer.rows - 1;
  return Math.floor(down / 2) * across + Math.floor(across / 2) + layer.prefix;
}

function shiftText({ down, right }: MapWindows): string {
  if (down === 0 && right === 0) return 'not shifted';
  return down === right
    ? `shifted by ${down} patches down and right`
    : `shifted by ${down} patches down and ${right} right`;
}

// What a reader has to know of a map that is not over all tokens; empty otherwise.
export function frameNote({ layer, window }: Frame): string {
  if (layer.kind === 'channel')
    return 'Rows and columns are channels of the head, which have no place on the picture.';
  if (layer.kind === 'class') return 'The one row is the class token, which looks at the patches.';
  if (layer.windows === null) return '';
  const { windows } = layer;
  const across = windowsAcross(windows);
  const row = Math.floor(window / across) + 1;
  const of = `Window ${row}, ${(window % across) + 1} of stage ${layer.stage + 1}`;
  const lowest = row === Math.ceil(windows.height / windows.side);
  const rightmost = (window % across) + 1 === across;
  const wraps = (lowest && windows.down > 0) || (rightmost && windows.right > 0);
  const edge = wraps ? ' Patches from opposite edges do not see each other.' : '';
  return `${of}, ${shiftText(windows)}; it is bright, the rest is dimmed.${edge}`;
}
