// Numbers as people read them.
import type { Figure } from '../model/document';

const thin = '\u202f';
const minus = '\u2212';
const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';

function grouped(digits: string): string {
  return digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, thin);
}

function special(value: number): string | null {
  if (Number.isNaN(value)) return '–';
  if (value === Infinity) return '∞';
  return value === -Infinity ? `${minus}∞` : null;
}

export function integer(value: number): string {
  const digits = grouped(String(Math.abs(Math.round(value))));
  return special(value) ?? (value < 0 ? minus + digits : digits);
}

export function fixed(value: number, decimals: number): string {
  return special(value) ?? value.toFixed(decimals).replace('-', minus);
}

function superscript(exponent: number): string {
  const digits = [...String(Math.abs(exponent))]
    .map((digit) => superscripts[Number(digit)])
    .join('');
  return exponent < 0 ? `⁻${digits}` : digits;
}

// Three digits that count: 6.74, 20 800, 4.11×10⁵.
export function significant(value: number, digits = 3): string {
  const odd = special(value);
  if (odd !== null) return odd;
  if (value === 0) return '0';
  const magnitude = Math.abs(value);
  const sign = value < 0 ? minus : '';
  if (magnitude >= 99_950 || magnitude < 0.0009995) {
    const [mantissa, exponent] = magnitude.toExponential(digits - 1).split('e');
    return `${sign}${mantissa}×10${superscript(Number(exponent))}`;
  }
  const [whole, fraction] = Number(magnitude.toPrecision(digits)).toString().split('.');
  return sign + grouped(whole) + (fraction === undefined ? '' : `.${fraction}`);
}

// For the ticks of an axis: no digits that say nothing.
export function tick(value: number): string {
  const odd = special(value);
  if (odd !== null) return odd;
  const magnitude = Math.abs(value);
  if (magnitude >= 1e5 || (magnitude < 1e-4 && magnitude > 0)) {
    const [mantissa, exponent] = value.toExponential(4).split('e');
    const factor = String(Number(mantissa)).replace('-', minus);
    const power = `10${superscript(Number(exponent))}`;
    return factor === '1' ? power : `${factor}×${power}`;
  }
  const [whole, fraction] = Number(magnitude.toPrecision(6)).toString().split('.');
  return (value < 0 ? minus : '') + grouped(whole) + (fraction === undefined ? '' : `.${fraction}`);
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  if (whole < 3600) return `${minutes}:${two(whole % 60)} min`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)} h`;
}

export function megabytes(value: number): string {
  if (!Number.isFinite(value) || value <= 0) return '–';
  return value < 10 ? `${value.toFixed(1)} MB` : `${integer(value)} MB`;
}

// 2026-11-16T10:00:00Z as 2026-11-16 10:00 UTC; anything else as it is.
export function moment(iso: string): string {
  const match = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(:\d{2}(\.\d+)?)?Z$/.exec(iso);
  return match ? `${match[1]} ${match[2]} UTC` : iso;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${integer(count)} ${count === 1 ? one : many}`;
}

export const figureName: Record<Figure, string> = {
  accuracy: 'accuracy',
  bits_per_byte: 'bits per byte',
  relative_l2: 'relative L2 error',
  loss: 'loss',
};

// Accuracy is a share in the document and a percentage on the page.
export function figureFactor(figure: Figure): number {
  return figure === 'accuracy' ? 100 : 1;
}

export function figureDecimals(figure: Figure): number {
  return { accuracy: 1, bits_per_byte: 3, relative_l2: 4, loss: 3 }[figure];
}

export function figureText(figure: Figure, value: number): string {
  return fixed(value * figureFactor(figure), figureDecimals(figure));
}

export function signed(value: number, decimals: number): string {
  const text = fixed(value, decimals);
  return value > 0 ? `+${text}` : text;
}
