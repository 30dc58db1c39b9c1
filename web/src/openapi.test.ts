// @vitest-environment jsdom
import { beforeEach, expect, test, vi } from 'vitest';
import groundText from '../../docs/openapi/ground.json?raw';
import aircraftText from '../../docs/openapi/wingbeatd.json?raw';
import html from '../openapi/index.html?raw';
import { exampleOf, show, start, typeOf } from '../openapi/page.js';

const ground = JSON.parse(groundText);
const aircraft = JSON.parse(aircraftText);

beforeEach(() => {
  const page = new DOMParser().parseFromString(html, 'text/html');
  document.body.replaceChildren(...page.body.children);
  location.hash = '';
});

test('every operation and type of both services is shown with its types', () => {
  for (const api of [ground, aircraft]) {
    show(api);
    const methods = Object.values(api.paths as object).flatMap((one) => Object.keys(one));
    expect(document.querySelectorAll('#operations > details').length).toBe(methods.length);
    expect(document.querySelectorAll('#types > details').length).toBe(Object.keys(api.components.schemas).length);
    // No link to a type leads nowhere.
    for (const link of document.querySelectorAll('a[href^="#type-"]')) {
      expect(document.getElementById(link.getAttribute('href')!.slice(1)), link.outerHTML).not.toBeNull();
    }
  }
});

test('an operation has its body, its answers and examples of both', () => {
  show(ground);
  const command = document.getElementById('post-/api/v1/fleet/commands')!;
  expect(command.textContent).toContain('FleetCommandRequest');
  expect(command.textContent).toContain('409');
  expect(JSON.parse(command.querySelector('pre')!.textContent!)).toMatchObject({ id: 'text', command: 'setup' });
});

test('types are said in words and examples end', () => {
  expect(typeOf({ type: ['array', 'null'], items: { $ref: '#/components/schemas/Link' } })).toBe('list of Link or null');
  expect(typeOf({ oneOf: [{ type: 'null' }, { $ref: '#/components/schemas/A' }] })).toBe('null or A');
  const loop = { Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' }, n: { type: 'integer' } } } };
  expect(exampleOf({ $ref: '#/components/schemas/Node' }, loop)).toEqual({ next: null, n: 0 });
});

test('the keyboard filters, and goes from one to the next', async () => {
  vi.stubGlobal('fetch', async () => new Response(JSON.stringify(ground)));
  await start();
  const input = document.getElementById('filter') as HTMLInputElement;
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }));
  expect(document.activeElement).toBe(input);
  input.value = 'links test delete';
  input.dispatchEvent(new Event('input'));
  expect(document.getElementById('count')!.textContent).toMatch(/^1 of /);
  input.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));
  expect(document.activeElement!.textContent).toContain('/api/v1/fleet/links/test');
  document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  expect(document.querySelectorAll('details[data-words]:not([hidden])').length).toBeGreaterThan(20);
});

test('text of the document is text', () => {
  show({ openapi: '3.1.0', info: { title: '<img src=x>' }, paths: { '/x': { get: { summary: '<b>bold</b>', responses: {} } } } });
  expect(document.querySelector('img, b')).toBeNull();
});

test('a document that does not arrive is said', async () => {
  vi.stubGlobal('fetch', async () => new Response('', { status: 503, statusText: 'busy' }));
  await start();
  expect(document.querySelector('[role=alert]')!.textContent).toContain('503 busy');
});
