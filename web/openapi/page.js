// Shows an OpenAPI 3.1 document: its operations with their types and examples, and its types. It is served as it is, by programs that
// build no page, and it asks for nothing but the document. All text goes into the page as text.

/** @typedef {Record<string, any>} Json */

/**
 * A type in words, for example `list of FleetAircraft, or null`.
 * @param {Json | undefined} schema
 * @returns {string}
 */
export function typeOf(schema) {
  if (!schema || typeof schema !== 'object') return 'anything';
  if (schema.$ref) return nameOf(schema.$ref);
  const options = schema.oneOf ?? schema.anyOf;
  if (options) return [...new Set(options.map(typeOf))].join(' or ');
  if (schema.allOf) return schema.allOf.map(typeOf).join(' and ');
  if (schema.enum) return schema.enum.map((/** @type {unknown} */ value) => JSON.stringify(value)).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const kinds = (Array.isArray(schema.type) ? schema.type : [schema.type]).map((/** @type {string | undefined} */ kind) => {
    if (kind === 'array') return `list of ${typeOf(schema.items)}`;
    return kind ?? 'anything';
  });
  return kinds.join(' or ');
}

/** @param {string} reference */
function nameOf(reference) {
  return reference.split('/').at(-1) ?? reference;
}

/**
 * A value of a type, as small as it can be.
 * @param {Json | undefined} schema
 * @param {Json} schemas
 * @param {string[]} [within] the types around it, of which none is shown inside itself
 * @returns {unknown}
 */
export function exampleOf(schema, schemas, within = []) {
  if (!schema || typeof schema !== 'object') return null;
  if (schema.example !== undefined) return schema.example;
  if (schema.examples?.length) return schema.examples[0];
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return within.includes(name) ? null : exampleOf(schemas[name], schemas, [...within, name]);
  }
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  const options = schema.oneOf ?? schema.anyOf;
  if (options) return exampleOf(options.find((/** @type {Json} */ one) => one.type !== 'null') ?? options[0], schemas, within);
  if (schema.allOf) {
    return Object.assign({}, ...schema.allOf.map((/** @type {Json} */ one) => exampleOf(one, schemas, within)));
  }
  const kind = Array.isArray(schema.type) ? schema.type.find((/** @type {string} */ one) => one !== 'null') : schema.type;
  switch (kind) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, of]) => [name, exampleOf(of, schemas, within)]),
      );
    case 'array':
      return [exampleOf(schema.items, schemas, within)];
    case 'integer':
      return schema.minimum ?? 0;
    case 'number':
      return schema.minimum ?? 0.5;
    case 'boolean':
      return true;
    case 'string':
      return 'text';
    default:
      return null;
  }
}

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} content
 */
function element(name, attributes = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

/**
 * A type in words, with a link where it has a name.
 * @param {Json | undefined} schema
 */
function typeNode(schema) {
  const refs = new Map();
  (function collect(/** @type {any} */ one) {
    if (!one || typeof one !== 'object') return;
    if (one.$ref) refs.set(nameOf(one.$ref), true);
    for (const part of [one.items, ...(one.oneOf ?? []), ...(one.anyOf ?? []), ...(one.allOf ?? [])]) collect(part);
  })(schema);
  const made = element('code');
  for (const word of typeOf(schema).split(/(\w+)/)) {
    made.append(refs.has(word) ? element('a', { href: `#type-${word}` }, word) : word);
  }
  return made;
}

/** @param {unknown} value */
function example(value) {
  return element('pre', { tabindex: '0' }, JSON.stringify(value, null, 2));
}

/**
 * @param {string[]} head
 * @param {(Node | string)[][]} rows
 */
function table(head, rows) {
  const row = (/** @type {string} */ kind, /** @type {(Node | string)[]} */ cells) =>
    element('tr', {}, ...cells.map((cell) => element(kind, kind === 'th' ? { scope: 'col' } : {}, cell)));
  return element('table', {}, element('thead', {}, row('th', head)), element('tbody', {}, ...rows.map((cells) => row('td', cells))));
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Json} operation
 * @param {Json} schemas
 */
function operationNode(method, path, operation, schemas) {
  const id = `${method}-${path}`;
  const [summary, ...rest] = [operation.summary, operation.description].filter(Boolean).join('\n\n').split('\n\n');
  const made = element(
    'details',
    { id, 'data-words': `${method} ${path} ${operation.summary ?? ''} ${operation.description ?? ''}`.toLowerCase() },
    element('summary', {}, element('span', { class: 'method' }, method.toUpperCase()), ' ', element('code', {}, path), ' ', element('span', { class: 'quiet' }, summary ?? '')),
    ...rest.map((text) => element('p', {}, text)),
  );
  if (operation.parameters?.length) {
    const rows = operation.parameters.map((/** @type {Json} */ one) => [
      element('code', {}, one.name),
      one.in,
      typeNode(one.schema),
      `${one.required ? 'required. ' : ''}${one.description ?? ''}`,
    ]);
    made.append(element('h3', {}, 'Parameters'), table(['Name', 'In', 'Type', ''], rows));
  }
  for (const [kind, content] of Object.entries(operation.requestBody?.content ?? {})) {
    made.append(element('h3', {}, 'Body'), element('p', {}, kind, ': ', typeNode(content.schema)));
    if (kind === 'application/json') made.append(example(exampleOf(content.schema, schemas)));
  }
  made.append(element('h3', {}, 'Answers'));
  for (const [status, answer] of Object.entries(operation.responses ?? {})) {
    made.append(element('h4', {}, `${status} ${answer.description ?? ''}`));
    for (const [kind, content] of Object.entries(answer.content ?? {})) {
      made.append(element('p', {}, kind, ': ', typeNode(content.schema)));
      if (kind === 'application/json' && status.startsWith('2')) {
        made.append(element('details', {}, element('summary', {}, 'Example'), example(exampleOf(content.schema, schemas))));
      }
    }
  }
  return made;
}

/**
 * @param {string} name
 * @param {Json} schema
 * @param {Json} schemas
 */
function schemaNode(name, schema, schemas) {
  const parts = schema.allOf ?? [schema];
  /** @type {(Node | string)[][]} */
  const rows = [];
  for (const part of parts) {
    for (const [field, of] of Object.entries(part.properties ?? {})) {
      const required = part.required?.includes(field) ? 'required. ' : '';
      rows.push([element('code', {}, field), typeNode(of), `${required}${of.description ?? ''}`]);
    }
  }
  const made = element(
    'details',
    { id: `type-${name}`, 'data-words': `${name} ${schema.description ?? ''}`.toLowerCase() },
    element('summary', {}, element('code', {}, name), ' ', element('span', { class: 'quiet' }, schema.description?.split('\n')[0] ?? '')),
    element('p', {}, 'Is ', typeNode(rows.length ? { type: 'object' } : schema)),
  );
  if (rows.length) made.append(table(['Member', 'Type', ''], rows));
  made.append(element('details', {}, element('summary', {}, 'Example'), example(exampleOf(schema, schemas, [name]))));
  return made;
}

/**
 * Puts a document into the page.
 * @param {Json} api
 */
export function show(api) {
  const at = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const schemas = api.components?.schemas ?? {};
  at('title').textContent = `${api.info?.title ?? 'API'} ${api.info?.version ?? ''}`;
  document.title = `${api.info?.title ?? 'Wingbeat'}: API`;
  at('about').textContent = `${api.info?.description ?? ''} OpenAPI ${api.openapi}.`;
  /** @type {Map<string, Node[]>} */
  const tags = new Map();
  for (const [path, methods] of Object.entries(api.paths ?? {})) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags?.[0] ?? 'aircraft';
      tags.set(tag, [...(tags.get(tag) ?? []), operationNode(method, path, operation, schemas)]);
    }
  }
  at('operations').replaceChildren(...[...tags].flatMap(([tag, nodes]) => [element('h2', {}, tag), ...nodes]));
  const types = Object.entries(schemas).map(([name, schema]) => schemaNode(name, schema, schemas));
  at('types').replaceChildren(element('h2', {}, 'Types'), ...types);
  filter();
  open();
}

/** What the filter's words are not in is hidden. */
function filter() {
  const input = /** @type {HTMLInputElement} */ (document.getElementById('filter'));
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('details[data-words]'));
  for (const one of all) {
    one.hidden = !words.every((word) => one.dataset.words?.includes(word));
    shown += one.hidden ? 0 : 1;
  }
  const count = document.getElementById('count');
  if (count) count.textContent = `${shown} of ${all.length}`;
}

/** Opens what the address names. */
function open() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.hidden = false;
    named.open = true;
    named.querySelector('summary')?.focus();
  }
}

/** `/` goes to the filter, Escape empties it, the arrows go from one summary that is shown to the next. */
function keys(/** @type {KeyboardEvent} */ event) {
  const input = /** @type {HTMLInputElement} */ (document.getElementById('filter'));
  if (event.key === '/' && event.target !== input) {
    event.preventDefault();
    input.focus();
  } else if (event.key === 'Escape' && input.value) {
    input.value = '';
    filter();
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    const all = [...document.querySelectorAll('details[data-words]:not([hidden]) > summary')];
    const from = document.activeElement === input ? -1 : all.indexOf(/** @type {Element} */ (document.activeElement));
    if (from < 0 && document.activeElement !== input) return;
    const next = all[from + (event.key === 'ArrowDown' ? 1 : -1)];
    if (next instanceof HTMLElement) {
      event.preventDefault();
      next.focus();
    }
  }
}

/** Fetches the document of the service that served the page. */
export async function start() {
  document.getElementById('filter')?.addEventListener('input', filter);
  document.addEventListener('keydown', keys);
  window.addEventListener('hashchange', open);
  try {
    const answer = await fetch('/openapi.json');
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    show(await answer.json());
  } catch (error) {
    document.getElementById('operations')?.replaceChildren(
      element('p', { class: 'wrong', role: 'alert' }, `The document did not arrive (${error instanceof Error ? error.message : error}). Load the page again.`),
    );
  }
}

if (document.getElementById('operations')) void start();
