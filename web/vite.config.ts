import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';

// The page in development asks the ground service (or dev/fake-ground.mjs) on this machine.
const api = { '/api': 'http://127.0.0.1:8700' };

export default defineConfig({
  plugins: [svelte(), svelteTesting()],
  server: { proxy: api, fs: { allow: ['.', '../docs/openapi'] } },
  preview: { proxy: api },
  // MapLibre alone is above the default limit of 500 kB, and it is loaded from the same machine.
  build: { target: 'es2023', chunkSizeWarningLimit: 1500 },
  worker: { format: 'es' },
  test: { include: ['src/**/*.test.ts'] },
});
