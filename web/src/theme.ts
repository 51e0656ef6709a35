// Light or dark: what the system says, until the reader says otherwise. The choice
// lives as long as the page; paper is always light.
import { colours, type Shade } from './view/palette';

export type Choice = 'auto' | Shade;

export interface Ink {
  background: string;
  text: string;
  muted: string;
  grid: string;
}

export class Theme {
  private choice: Choice = 'auto';
  private printing = false;
  private readonly listeners: (() => void)[] = [];
  private readonly dark = window.matchMedia('(prefers-color-scheme: dark)');

  constructor() {
    this.dark.addEventListener('change', () => this.apply());
    this.apply();
  }

  chosen(): Choice {
    return this.choice;
  }

  choose(choice: Choice): void {
    this.choice = choice;
    this.apply();
  }

  print(printing: boolean): void {
    this.printing = printing;
    this.apply();
  }

  shade(): Shade {
    if (this.printing) return 'light';
    if (this.choice !== 'auto') return this.choice;
    return this.dark.matches ? 'dark' : 'light';
  }

  colour(index: number): string {
    return colours[this.shade()][index];
  }

  // The colours of the style sheet, for what is drawn on a canvas.
  ink(): Ink {
    const style = getComputedStyle(document.documentElement);
    const value = (name: string) => style.getPropertyValue(name).trim();
    return {
      background: value('--panel'),
      text: value('--text'),
      muted: value('--muted'),
      grid: value('--grid'),
    };
  }

  subscribe(listener: () => void): void {
    this.listeners.push(listener);
  }

  private apply(): void {
    const shade = this.shade();
    if (document.documentElement.dataset.theme === shade) return;
    const { dataset, style } = document.documentElement;
    dataset.theme = shade;
    colours[shade].forEach((colour, i) => style.setProperty(`--c${i}`, colour));
    for (const listener of this.listeners) listener();
  }
}
