/** The map's style, made from the page's design tokens: no tiles, no sprites, no glyphs, no network. */
import type { ExpressionSpecification, SourceSpecification, StyleSpecification } from 'maplibre-gl';
import { COLOURS } from './features';
import { CROSS_ID } from './symbols';

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
  readonly aircraft: readonly string[];
}

/** The tokens as the page's style sheet defines them for the present colour scheme. */
export function readTokens(element: Element): MapTokens {
  const style = getComputedStyle(element);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: token('--text'),
    halo: token('--map-surface'),
    grid: token('--map-grid'),
    gridText: token('--text-dim'),
    mission: token('--mission'),
    selection: token('--accent'),
    stale: token('--text-dim'),
    bad: token('--bad'),
    warn: token('--warn'),
    aircraft: Array.from({ length: COLOURS }, (_, index) => token(`--aircraft-${index}`)),
  };
}

export const SOURCES = ['mission', 'formation', 'tracks', 'avoidance', 'targets', 'aircraft'] as const;

export function mapStyle(tokens: MapTokens): StyleSpecification {
  // Deep enough that positions keep their centimetres at the closest zoom.
  const empty = (): SourceSpecification => ({ type: 'geojson', data: { type: 'FeatureCollection', features: [] }, maxzoom: 22 });
  const [first = tokens.text, ...others] = tokens.aircraft;
  const colour = [
    'match', ['get', 'colour'], ...others.flatMap((value, index) => [index + 1, value]), first,
  ] as unknown as ExpressionSpecification;
  const isPoint: ExpressionSpecification = ['==', ['geometry-type'], 'Point'];
  const isLine: ExpressionSpecification = ['!=', ['geometry-type'], 'Point'];
  const always = { 'icon-allow-overlap': true, 'icon-ignore-placement': true } as const;
  return {
    version: 8,
    sources: Object.fromEntries(SOURCES.map((name) => [name, empty()])),
    layers: [
      {
        id: 'mission-line', type: 'line', source: 'mission', filter: isLine,
        layout: { 'line-join': 'round', 'line-cap': 'round' },
        paint: { 'line-color': tokens.mission, 'line-width': 1.5, 'line-opacity': 0.75 },
      },
      {
        id: 'mission-points', type: 'circle', source: 'mission', filter: isPoint,
        paint: {
          'circle-radius': 3.5, 'circle-color': tokens.halo,
          'circle-stroke-color': tokens.mission, 'circle-stroke-width': 1.5,
        },
      },
      {
        id: 'mission-numbers', type: 'symbol', source: 'mission', filter: isPoint,
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
        id: 'tracks', type: 'line', source: 'tracks',
        layout: { 'line-join': 'round', 'line-cap': 'round' },
        paint: { 'line-color': colour, 'line-width': 1.5, 'line-opacity': 0.55 },
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
        id: 'target-lines', type: 'line', source: 'targets', filter: isLine,
        paint: { 'line-color': colour, 'line-width': 1, 'line-dasharray': [3, 3], 'line-opacity': 0.9 },
      },
      {
        id: 'target-rings', type: 'circle', source: 'targets', filter: isPoint,
        paint: {
          'circle-radius': 6, 'circle-opacity': 0,
          'circle-stroke-color': colour, 'circle-stroke-width': 1.5,
        },
      },
      {
        id: 'marks', type: 'symbol', source: 'avoidance', filter: ['==', ['get', 'kind'], 'mark'],
        layout: { 'icon-image': ['get', 'symbol'], ...always },
      },
      {
        id: 'selection', type: 'circle', source: 'aircraft', filter: ['get', 'selected'],
        paint: {
          'circle-radius': 17, 'circle-color': tokens.selection, 'circle-opacity': 0.18,
          'circle-stroke-color': tokens.selection, 'circle-stroke-width': 2,
        },
      },
      {
        // Seen from far away, where circles of 20 m are specks.
        id: 'conflict-rings', type: 'circle', source: 'aircraft', filter: ['get', 'conflict'],
        paint: {
          'circle-radius': 14, 'circle-opacity': 0, 'circle-stroke-color': tokens.warn, 'circle-stroke-width': 2.5,
        },
      },
      {
        id: 'aircraft', type: 'symbol', source: 'aircraft',
        layout: {
          'icon-image': ['get', 'symbol'], 'icon-rotate': ['get', 'heading'], 'icon-rotation-alignment': 'map',
          'symbol-sort-key': ['case', ['get', 'selected'], 1, 0], ...always,
        },
      },
      {
        id: 'crosses', type: 'symbol', source: 'aircraft', filter: ['get', 'crossed'],
        layout: { 'icon-image': CROSS_ID, ...always },
      },
      {
        id: 'labels', type: 'symbol', source: 'aircraft', filter: ['!', ['get', 'selected']],
        layout: {
          'icon-image': ['get', 'label'], 'icon-anchor': 'top', 'icon-offset': [0, 14], 'icon-padding': 0,
          // Where labels would touch, an aircraft in conflict keeps its own.
          'symbol-sort-key': ['case', ['get', 'conflict'], 0, 1],
        },
      },
      {
        id: 'selected-labels', type: 'symbol', source: 'aircraft', filter: ['get', 'selected'],
        layout: { 'icon-image': ['get', 'label'], 'icon-anchor': 'top', 'icon-offset': [0, 18], ...always },
      },
    ],
  };
}
