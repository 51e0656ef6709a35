// What the reader has chosen. It is kept apart from the document, so that a
// document that is replaced (live mode) changes none of it.

export interface View {
  task: string;
  hidden: ReadonlySet<string>; // activations
  seeds: 'bands' | 'lines';
  axis: 'step' | 'time';
  layer: number | 'all';
  head: number | 'all';
  combine: 'max' | 'mean'; // over layers, heads and the batch
  relative: boolean; // norms over sqrt(N)
}

export type Listener = (changed: ReadonlySet<keyof View>) => void;

export class Store {
  private readonly listeners: Listener[] = [];

  constructor(private view: View) {}

  get(): Readonly<View> {
    return this.view;
  }

  set(patch: Partial<View>): void {
    const changed = new Set<keyof View>();
    for (const key of Object.keys(patch) as (keyof View)[]) {
      if (patch[key] !== this.view[key]) changed.add(key);
    }
    if (changed.size === 0) return;
    this.view = { ...this.view, ...patch };
    for (const listener of this.listeners) listener(changed);
  }

  toggle(activation: string): void {
    const hidden = new Set(this.view.hidden);
    if (!hidden.delete(activation)) hidden.add(activation);
    this.set({ hidden });
  }

  subscribe(listener: Listener): void {
    this.listeners.push(listener);
  }
}
