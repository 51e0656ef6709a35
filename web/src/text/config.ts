// Reads a config.toml as polyattn writes it: sections, and one key a line. It is
// shown, not run, so a line of another kind is left out.

export type Config = Map<string, string>; // 'model.dim' -> '64'

// The value without the comment behind it.
function valueOf(text: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text);
  if (quoted === null) return text.replace(/\s*#.*$/, '').trim();
  return quoted[1].replace(/\\(["\\])/g, '$1');
}

export function readConfig(toml: string): Config {
  const config: Config = new Map();
  let section = '';
  for (const line of toml.split(/\r?\n/)) {
    const header = /^\s*\[([^\]]*)\]/.exec(line);
    if (header !== null) section = header[1].trim();
    const entry = /^\s*([A-Za-z0-9_-]+)\s*=\s*(.*)$/.exec(line);
    if (entry !== null)
      config.set(section ? `${section}.${entry[1]}` : entry[1], valueOf(entry[2]));
  }
  return config;
}

export interface Difference {
  key: string;
  values: string[]; // in the order in which they were met
}

// Keys that do not have one value in all configs, apart from those that the page
// speaks of anyway.
export function differences(configs: Config[], expected: string[]): Difference[] {
  const found = new Map<string, Set<string>>();
  for (const config of configs) {
    for (const [key, value] of config) {
      if (!found.has(key)) found.set(key, new Set());
      found.get(key)?.add(value);
    }
  }
  return [...found]
    .filter(([key, values]) => values.size > 1 && !expected.includes(key))
    .map(([key, values]) => ({ key, values: [...values] }));
}
