/** What the maps of the fleet and of the replay have in common: how one is made, and what panels leave of it. */
import { Map as MapLibreMap, ScaleControl, setWorkerUrl } from 'maplibre-gl';
// MapLibre 6 does not find its worker in a bundle; without this the map never loads.
import workerUrl from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url';
import 'maplibre-gl/dist/maplibre-gl.css';
import './base.css';
import { mapStyle, type MapTokens } from './style';

setWorkerUrl(workerUrl);

/** Of the map, in pixels. */
export interface Sides {
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly left: number;
}

/** A map, or why there is none. `label` is for a screen reader. */
export function newMap(container: HTMLElement, tokens: MapTokens, label: string): MapLibreMap | string {
  let map: MapLibreMap;
  try {
    map = new MapLibreMap({
      container,
      style: mapStyle(tokens),
      center: [0, 0],
      zoom: 1,
      maxZoom: 22,
      attributionControl: false,
      // North is up and the ground is flat: the graticule and every heading can be read off directly.
      dragRotate: false,
      pitchWithRotate: false,
      touchPitch: false,
      fadeDuration: 0,
      renderWorldCopies: false,
    });
  } catch (error) {
    return `The map needs WebGL 2: ${error instanceof Error ? error.message : String(error)}`;
  }
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new ScaleControl({ maxWidth: 120 }), 'bottom-left');
  map.on('error', ({ error }) => console.error('map:', error));
  map.getCanvas().setAttribute('aria-label', `${label}: arrow keys move, plus and minus zoom`);
  return map;
}

/** Programs that draw WebGL on the processor, as browsers name them. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** Whether a map is drawn without a graphics card: a frame of it takes a tenth of a second then. */
export function isDrawnBySoftware(map: MapLibreMap): boolean {
  const gl = map.getCanvas().getContext('webgl2');
  const named = gl?.getExtension('WEBGL_debug_renderer_info');
  return gl != null && SOFTWARE.test(String(gl.getParameter(named?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
}

/** What decides where a place of the map is on a canvas over it. */
export function viewOf(map: MapLibreMap, canvas: HTMLCanvasElement): string {
  const centre = map.getCenter();
  const { x, y } = map.project(centre);
  return [centre.lng, centre.lat, map.getZoom(), x, y, canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio].join();
}

/** How much of the map panels lie over. */
export function covered(frame: HTMLElement): Sides {
  const style = getComputedStyle(frame);
  const side = (name: string) => Number.parseFloat(style.getPropertyValue(`--free-${name}`)) || 0;
  return { top: side('top'), right: side('right'), bottom: side('bottom'), left: side('left') };
}

/** The same with these margins, for what is to be seen; on a small screen, where that leaves nothing, 20 pixels all around. */
export function room(frame: HTMLElement, margins: Sides): Sides {
  const { top, right, bottom, left } = covered(frame);
  const all = { top: top + margins.top, right: right + margins.right, bottom: bottom + margins.bottom, left: left + margins.left };
  const fits = all.left + all.right < frame.clientWidth - 40 && all.top + all.bottom < frame.clientHeight - 40;
  return fits ? all : { top: 20, right: 20, bottom: 20, left: 20 };
}
