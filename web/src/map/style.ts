/** The map's style, made from the page's design tokens: no tiles, no sprites, no glyphs, no network. */
import type { ExpressionSpecification, SourceSpecification, StyleSpecification } from 'maplibre-gl';
import { COLOURS } from './features';
import { HOME_ID } from './symbols';
import { GROUND, type GroundMap } from './ground';

export interface MapTokens {
  readonly text: string;
  readonly halo: string;
  readonly grid: string;
  readonly gridText: string;
  readonly mission: string;
  readonly selection: string;
  readonly stale: string;
  readonly bad: string;
  readonly warn: string;
  /** The number in a filled symbol. */
  readonly onAircraft: string;
  readonly aircraft: readonly string[];
}

/** The tokens as the page's style sheet defines them for the present colours. Each is resolved: a token may name two colours. */
export function readTokens(element: HTMLElement): MapTokens {
  const probe = element.appendChild(document.createElement('span'));
  const token = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const tokens = {
    text: token('--text'),
    halo: token('--map-surface'),
    grid: token('--map-grid'),
    gridText: token('--text-dim'),
    mission: token('--mission'),
    selection: token('--accent'),
    stale: token('--text-dim'),
    bad: token('--alarm'),
    warn: token('--caution'),
    onAircraft: token('--on-aircraft'),
    aircraft: Array.from({ length: COLOURS }, (_, index) => token(`--aircraft-${index}`)),
  };
  probe.remove();
  return tokens;
}

export const SOURCES = ['site', 'mission', 'formation', 'avoidance', 'plan', 'region'] as const;

export function mapStyle(tokens: MapTokens, ground?: GroundMap, dark = false): StyleSpecification {
  // Deep enough that positions keep their centimetres at the closest zoom.
  const empty = (): SourceSpecification => ({ type: 'geojson', data: { type: 'FeatureCollection', features: [] }, maxzoom: 22 });
  const [first = tokens.text, ...others] = tokens.aircraft;
  const colour = [
    'match', ['get', 'colour'], ...others.flatMap((value, index) => [index + 1, value]), first,
  ] as unknown as ExpressionSpecification;
  /** A route in its aircraft's colour; one that several fly is of none of them. */
  const routeColour = [
    'match', ['get', 'colour'], ...tokens.aircraft.flatMap((value, index) => [index, value]), tokens.mission,
  ] as unknown as ExpressionSpecification;
  const isPoint: ExpressionSpecification = ['==', ['geometry-type'], 'Point'];
  const isLine: ExpressionSpecification = ['!=', ['geometry-type'], 'Point'];
  const kind = (...kinds: string[]): ExpressionSpecification => ['in', ['get', 'kind'], ['literal', kinds]];
  const always = { 'icon-allow-overlap': true, 'icon-ignore-placement': true } as const;
  return {
    version: 8,
    sources: { ...Object.fromEntries(SOURCES.map((name) => [name, empty()])), ...(ground ? { [GROUND]: ground.source } : {}) },
    layers: [
      ...(ground?.layers(dark) ?? []),
      {
        id: 'fence', type: 'line', source: 'site', filter: ['==', ['get', 'kind'], 'fence'],
        paint: { 'line-color': tokens.warn, 'line-width': 2, 'line-dasharray': [4, 2] },
      },
      {
        id: 'region-fill', type: 'fill', source: 'region', filter: kind('exclusion'),
        paint: { 'fill-color': tokens.bad, 'fill-opacity': 0.12 },
      },
      {
        id: 'region-line', type: 'line', source: 'region', filter: isLine,
        paint: { 'line-color': ['match', ['get', 'kind'], 'exclusion', tokens.bad, tokens.warn], 'line-width': ['case', ['get', 'drawn'], 3, 1.5] },
      },
      {
        id: 'region-points', type: 'circle', source: 'region', filter: isPoint,
        paint: { 'circle-radius': 5, 'circle-color': ['match', ['get', 'kind'], 'rally', tokens.mission, tokens.warn], 'circle-stroke-color': tokens.halo, 'circle-stroke-width': 1.5 },
      },
      {
        id: 'homes', type: 'symbol', source: 'site', filter: ['==', ['get', 'kind'], 'home'],
        layout: { 'icon-image': HOME_ID, ...always, 'icon-size': ['interpolate', ['linear'], ['zoom'], 14, 0.5, 18, 1] },
      },
      {
        id: 'mission-line', type: 'line', source: 'mission', filter: isLine,
        layout: { 'line-join': 'round', 'line-cap': 'round' },
        paint: { 'line-color': routeColour, 'line-width': ['case', ['get', 'chosen'], 3, 1.5], 'line-opacity': ['case', ['get', 'chosen'], 1, 0.6] },
      },
      {
        id: 'mission-points', type: 'circle', source: 'mission', filter: isPoint,
        paint: {
          'circle-radius': 3.5, 'circle-color': tokens.halo,
          'circle-stroke-color': routeColour, 'circle-stroke-width': 1.5,
        },
      },
      {
        id: 'mission-numbers', type: 'symbol', source: 'mission', filter: ['all', isPoint, ['get', 'chosen']],
        layout: { 'icon-image': ['get', 'number'], 'icon-anchor': 'bottom-left', 'icon-offset': [3, -2], 'icon-padding': 0 },
      },
      {
        id: 'slot-lines', type: 'line', source: 'formation', filter: isLine,
        paint: { 'line-color': colour, 'line-width': ['case', ['get', 'chosen'], 2, 1], 'line-opacity': ['case', ['get', 'chosen'], 0.95, 0.45] },
      },
      {
        // Where the numbered rings would cover one another, a dot is left.
        id: 'slot-dots', type: 'circle', source: 'formation', filter: isPoint,
        paint: {
          'circle-radius': 3, 'circle-color': tokens.halo, 'circle-stroke-color': colour, 'circle-stroke-width': 1.5,
        },
      },
      {
        id: 'slots', type: 'symbol', source: 'formation', filter: isPoint,
        layout: {
          'icon-image': ['get', 'slot'], 'icon-padding': 0, 'icon-ignore-placement': true,
          'symbol-sort-key': ['case', ['get', 'chosen'], 0, 1],
        },
      },
      {
        id: 'places', type: 'fill', source: 'avoidance', filter: ['==', ['get', 'kind'], 'place'],
        paint: { 'fill-color': colour, 'fill-opacity': ['case', ['get', 'near'], 0.1, 0.05] },
      },
      {
        id: 'place-rims', type: 'line', source: 'avoidance', filter: ['==', ['get', 'kind'], 'place'],
        paint: { 'line-color': colour, 'line-width': 1, 'line-opacity': ['case', ['get', 'near'], 0.75, 0.35] },
      },
      {
        id: 'ways', type: 'line', source: 'avoidance', filter: ['==', ['get', 'kind'], 'way'],
        layout: { 'line-join': 'round', 'line-cap': 'round' },
        paint: { 'line-color': colour, 'line-width': ['case', ['get', 'near'], 2, 1], 'line-opacity': ['case', ['get', 'near'], 0.9, 0.5] },
      },
      {
        id: 'aside-ways', type: 'line', source: 'avoidance', filter: ['==', ['get', 'kind'], 'aside-way'],
        paint: { 'line-color': colour, 'line-width': 1.5, 'line-dasharray': [1, 2] },
      },
      {
        id: 'pairs', type: 'line', source: 'avoidance', filter: ['==', ['get', 'kind'], 'pair'],
        layout: { 'line-cap': 'butt' },
        paint: { 'line-color': tokens.warn, 'line-width': 2.5, 'line-dasharray': [2, 1.2] },
      },
      {
        id: 'marks', type: 'symbol', source: 'avoidance', filter: ['==', ['get', 'kind'], 'mark'],
        layout: { 'icon-image': ['get', 'symbol'], ...always },
      },
      // What is planned and not sent is dashed; what stops it is red.
      {
        id: 'plan-area', type: 'fill', source: 'plan', filter: kind('area'),
        paint: { 'fill-color': tokens.selection, 'fill-opacity': 0.12 },
      },
      {
        id: 'plan-approach', type: 'line', source: 'plan', filter: kind('approach'),
        paint: { 'line-color': ['case', ['get', 'stops'], tokens.bad, tokens.selection], 'line-width': ['case', ['get', 'stops'], 3, 1.5], 'line-dasharray': [1, 2] },
      },
      {
        id: 'plan-others', type: 'line', source: 'plan', filter: kind('other', 'sketch', 'lanes'),
        paint: { 'line-color': tokens.selection, 'line-width': 1.5, 'line-opacity': 0.8, 'line-dasharray': [3, 2] },
      },
      {
        id: 'plan-route', type: 'line', source: 'plan', filter: kind('route'),
        layout: { 'line-join': 'round' },
        paint: { 'line-color': tokens.selection, 'line-width': 3, 'line-dasharray': [3, 1] },
      },
      {
        id: 'plan-slots', type: 'symbol', source: 'plan', filter: kind('slot'),
        layout: { 'icon-image': ['get', 'slot'], ...always },
      },
      {
        id: 'plan-waypoints', type: 'circle', source: 'plan', filter: kind('waypoint', 'corner'),
        paint: {
          'circle-radius': ['case', ['get', 'chosen'], 9, ['get', 'here'], 6, 3.5], 'circle-color': ['case', ['get', 'chosen'], tokens.selection, tokens.halo],
          'circle-stroke-color': tokens.selection, 'circle-stroke-width': 2,
        },
      },
      {
        id: 'plan-conflict-lines', type: 'line', source: 'plan', filter: ['all', kind('conflict'), isLine],
        paint: { 'line-color': tokens.warn, 'line-width': 3 },
      },
      {
        // A ring of 18 px around each of the two: it covers neither the route nor the waypoint below it.
        id: 'plan-conflicts', type: 'circle', source: 'plan', filter: ['all', kind('conflict'), isPoint],
        paint: { 'circle-radius': 9, 'circle-color': tokens.warn, 'circle-opacity': 0.25, 'circle-stroke-color': tokens.warn, 'circle-stroke-width': 2.5 },
      },
      {
        id: 'plan-numbers', type: 'symbol', source: 'plan', filter: ['all', kind('waypoint'), ['get', 'here']],
        layout: { 'icon-image': ['get', 'number'], 'icon-anchor': 'bottom-left', 'icon-offset': [5, -4], 'icon-padding': 0 },
      },
    ],
  };
}
