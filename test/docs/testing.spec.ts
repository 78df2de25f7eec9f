import { pathToFileURL } from 'node:url';
import { snippetsOf, writeSnippets } from './markdown.js';

// The tests that docs/testing.md shows are tests: here they are.
const examples = snippetsOf('docs/testing.md', 'ts').filter(({ mark }) => mark === 'spec');
for (const { path } of writeSnippets(examples, 'testing')) await import(pathToFileURL(path).href);
