// An activation with the settings in which it differs from the other rows of its
// comparison: x^3{model.start=plain}. On the page this is one name.

export function withVariant(activation: string, variant: string): string {
  return variant === '' ? activation : `${activation}{${variant}}`;
}

// The formula, and the settings in its braces; '' without. Braces that hold no setting
// are part of the name.
export function splitVariant(name: string): [string, string] {
  const [, formula, settings] = /^([^{]*)\{([a-z_.]+=.*)\}$/.exec(name) ?? ['', name, ''];
  return [formula, settings];
}

// The keys that variants set: 'a=1, b=2' has a and b.
export function variantKeys(names: readonly string[]): string[] {
  const settings = names.flatMap((name) => splitVariant(name)[1].split(','));
  return settings.map((setting) => setting.split('=')[0].trim()).filter((key) => key !== '');
}
