// What a layer is called: its number, and what it is in models of several kinds.
import type { Run } from '../model/document';

// "window attention of stage 2"; empty where all layers are alike. Runs of one task
// may be of several models: then only what they agree on is said.
function partOf(runs: Run[], layer: number): string {
  const parts = new Set(
    runs
      .map((run) => run.norms.layers[layer])
      .filter((found) => found !== undefined)
      .map(({ kind, stage }) => {
        const words = kind === '' ? '' : `${kind} attention`;
        if (stage === null) return words;
        return words === '' ? `stage ${stage + 1}` : `${words} of stage ${stage + 1}`;
      }),
  );
  return parts.size === 1 ? [...parts][0] : '';
}

export function layerName(runs: Run[], layer: number): string {
  const part = partOf(runs, layer);
  return part === '' ? String(layer + 1) : `${layer + 1}, ${part}`;
}
