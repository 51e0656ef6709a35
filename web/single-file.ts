// Vite plugins that make the page one file: the script, the styles and the two
// fonts that our formulas need stand inside it, under a policy that lets nothing
// else run and nothing be loaded.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

// What C++ replaces by the document, once.
export const placeholder = '"__POLYATTN_REPORT__"';

const fonts = ['KaTeX_Main-Regular', 'KaTeX_Math-Italic'];
const bundled = ['katex', 'uplot'];

// KaTeX brings twenty fonts in three formats, a megabyte. Formulas of attention
// need the upright and the italic one.
export function fewFonts(): Plugin {
  return {
    name: 'few-fonts',
    enforce: 'pre',
    transform(code, id) {
      if (!/katex(\.min)?\.css/.test(id)) return null;
      const kept = code.replace(/@font-face\s*\{[^}]*\}/g, (face) => {
        const font = fonts.find((name) => face.includes(`${name}.woff2`));
        if (font === undefined) return '';
        const source = `src:url(fonts/${font}.woff2) format("woff2")`;
        return face.replace(/src:[^;}]*/, source);
      });
      return { code: kept, map: null };
    },
  };
}

function licences(): string {
  const texts = bundled.map((name) => {
    const url = new URL(`./node_modules/${name}/LICENSE`, import.meta.url);
    return `${name}\n\n${readFileSync(url, 'utf8').trim()}`;
  });
  // Two hyphens would end the comment.
  return texts.join('\n\n').replace(/--+/g, '-');
}

function policy(script: string): string {
  const hash = createHash('sha256').update(script).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data: blob:',
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function assemble(html: string, script: string, style: string): string {
  if (/<\/script|<!--/i.test(script))
    throw new Error('[single-file] the script would end its own element');
  if (/<\/style/i.test(style))
    throw new Error('[single-file] the styles would end their own element');
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy(script)}">`;
  const page = html
    .replace(/<script type="module"[^>]*><\/script>/, '')
    .replace(/<link rel="stylesheet"[^>]*>/, '')
    .replace(
      '<!doctype html>',
      () => `<!doctype html>\n<!-- This page holds the following works.\n\n${licences()}\n-->`,
    )
    .replace(/(<meta charset="utf-8" ?\/?>)/, (charset) => `${charset}\n    ${meta}`)
    .replace('</head>', () => `<style>${style}</style>\n  </head>`)
    .replace('</body>', () => `<script type="module">${script}</script>\n  </body>`);
  if (page.split(placeholder).length !== 2)
    throw new Error(`[single-file] ${placeholder} must occur exactly once`);
  return page;
}

export function singleFile(name: string): Plugin {
  return {
    name: 'single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      let html = '';
      let script = '';
      let style = '';
      for (const [file, output] of Object.entries(bundle)) {
        if (output.type === 'chunk') script += output.code;
        else if (file.endsWith('.css')) style += String(output.source);
        else if (file.endsWith('.html')) html = String(output.source);
        else throw new Error(`[single-file] ${file} was not inlined`);
        delete bundle[file];
      }
      this.emitFile({
        type: 'asset',
        fileName: name,
        source: assemble(html, script.trim(), style),
      });
    },
  };
}
