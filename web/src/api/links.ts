/** Links between aircraft: the matrix of every pair, and a test of one link. */
import type { FleetLinks, FleetLinkTest, LinkTestRequest } from './model';
import { ask, type Answer } from './missions';

export const FLEET_LINKS = '/api/v1/fleet/links';
export const FLEET_LINK_TEST = '/api/v1/fleet/links/test';

export const readLinks = (request: typeof fetch = fetch): Promise<Answer<FleetLinks>> => ask(FLEET_LINKS, 'GET', undefined, request);
export const readLinkTest = (request: typeof fetch = fetch): Promise<Answer<FleetLinkTest>> => ask(FLEET_LINK_TEST, 'GET', undefined, request);
export const beginLinkTest = (test: LinkTestRequest, request: typeof fetch = fetch): Promise<Answer<FleetLinkTest>> =>
  ask(FLEET_LINK_TEST, 'POST', test, request);
export const endLinkTest = (request: typeof fetch = fetch): Promise<Answer<FleetLinkTest>> => ask(FLEET_LINK_TEST, 'DELETE', undefined, request);

/** The record of one receiver, as `wingbeat linktest report` reads it. */
export const linkTestFile = (receiver: string): string => `${FLEET_LINK_TEST}/file?receiver=${encodeURIComponent(receiver)}`;
