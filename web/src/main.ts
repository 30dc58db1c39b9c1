import { mount } from 'svelte';
import './app.css';

const target = document.getElementById('app');
if (!target) throw new Error('index.html: no element #app');
// A replay is a page of its own: nothing that commands an aircraft is loaded with it.
const { default: Page } = location.pathname === '/replay' ? await import('./replay/ReplayPage.svelte') : await import('./App.svelte');
mount(Page, { target });
