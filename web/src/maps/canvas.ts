// Attention on canvases: the matrix, and a row of it over the picture.
import type { Picture } from '../model/document';
import { decodeBytes } from '../model/read-maps';
import type { Shade } from '../view/palette';
import { css, diverging, placed, type Contrast } from './colour';
import type { Place } from './frame';
import type { Matrix } from './matrix';

export interface Look {
  shade: Shade;
  contrast: Contrast;
  largest: number; // the weight at the end of the palette
}

function context2d(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext('2d');
  if (context === null) throw new Error('[maps] the browser has no canvas');
  return context;
}

// One pixel a weight; the style sheet makes it larger.
export function drawMatrix(canvas: HTMLCanvasElement, matrix: Matrix, look: Look): void {
  canvas.width = matrix.columns;
  canvas.height = matrix.rows;
  const context = context2d(canvas);
  const image = context.createImageData(matrix.columns, matrix.rows);
  for (let i = 0; i < matrix.weights.length; ++i) {
    const [r, g, b] = diverging(placed(matrix.weights[i], look.largest, look.contrast), look.shade);
    image.data.set([r, g, b, 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

function pixelsOf(picture: Picture): ImageData | null {
  const { width, height, channels } = picture;
  const bytes = decodeBytes(picture.pixels, width * height * channels);
  if (bytes === null) return null;
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; ++i) {
    for (let channel = 0; channel < 3; ++channel)
      image.data[4 * i + channel] = bytes[i * channels + (channels === 3 ? channel : 0)];
    image.data[4 * i + 3] = 255;
  }
  return image;
}

export function drawPicture(canvas: HTMLCanvasElement, picture: Picture, scale: number): boolean {
  const image = pixelsOf(picture);
  if (image === null) return false;
  const small = document.createElement('canvas');
  small.width = picture.width;
  small.height = picture.height;
  context2d(small).putImageData(image, 0, 0);
  canvas.width = picture.width * scale;
  canvas.height = picture.height * scale;
  const context = context2d(canvas);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  return true;
}

export interface Cell {
  place: Place;
  weight: number;
}

export interface Overlay {
  patch: number; // pixels of its side
  cells: Cell[];
  query: Place | null;
  key: Place | null;
  dimmed: boolean; // what is no cell
}

function outline(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  side: number,
  colour: string,
): void {
  context.lineWidth = 6;
  context.strokeStyle = '#000';
  context.strokeRect(x + 1, y + 1, side - 2, side - 2);
  context.lineWidth = 3;
  context.strokeStyle = colour;
  context.strokeRect(x + 1, y + 1, side - 2, side - 2);
}

// Darkens all but the cells.
function dimOthers(canvas: HTMLCanvasElement, side: number, cells: Cell[]): void {
  const context = context2d(canvas);
  context.beginPath();
  context.rect(0, 0, canvas.width, canvas.height);
  for (const { place } of cells) context.rect(place.x * side, place.y * side, side, side);
  context.globalAlpha = 0.62;
  context.fillStyle = '#000';
  context.fill('evenodd');
  context.globalAlpha = 1;
}

// Colours each cell by its weight, the more strongly the larger, so that the
// picture is seen where there is little.
export function drawOverlay(
  canvas: HTMLCanvasElement,
  scale: number,
  { patch, cells, query, key, dimmed }: Overlay,
  look: Look,
): void {
  const context = context2d(canvas);
  const side = patch * scale;
  if (dimmed) dimOthers(canvas, side, cells);
  for (const { place, weight } of cells) {
    const t = placed(weight, look.largest, look.contrast);
    const [x, y] = [place.x * side, place.y * side];
    context.globalAlpha = Math.min(0.85, Math.abs(t) * 1.1);
    // The strong middle of the light palette stands out on any picture.
    context.fillStyle = css(diverging(Math.sign(t) * (0.45 + 0.3 * Math.abs(t)), 'light'));
    context.fillRect(x, y, side, side);
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.strokeStyle = '#8a8a8a';
    context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
  }
  context.globalAlpha = 1;
  if (key !== null) outline(context, key.x * side, key.y * side, side, '#ffd43b');
  if (query !== null) outline(context, query.x * side, query.y * side, side, '#ffffff');
}
