import js from '@eslint/js';
import ts from 'typescript-eslint';

/** The folders of `lib/`, lowest layer first; a folder may import from lower layers only (docs/architecture.md). */
const layers = [
  ['errors', 'collections'],
  ['observability'],
  ['jobs'],
  ['store', 'cluster'],
  ['intake', 'buckets', 'recurring'],
  ['engine', 'maintenance'],
  ['scheduler'],
];

const above = (index) => layers.slice(index + 1).flat();
const layerRules = layers.flatMap((folders, index) =>
  folders.map((folder) => ({
    files: [`lib/${folder}/**/*.ts`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: [
                ...above(index),
                'discovery',
                'decorators',
                'testing',
                'embedded',
                'class-validator',
                'health',
              ].map((f) => `**/${f}/**`),
              message: `lib/${folder} is below that folder: dependencies point one way (docs/architecture.md).`,
            },
          ],
        },
      ],
    },
  })),
);

export default ts.config(
  {
    ignores: [
      'dist',
      'sample/dist',
      'sample/output',
      'node_modules',
      'coverage',
      'test/fixtures',
      '.ratchet',
    ],
  },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [ts.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/unified-signatures': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      // Nest declares the options of its factories as classes, and takes object literals for them.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
    },
  },
  ...layerRules,
  {
    // Entries of their own, with optional peers: they know of the library what users know.
    files: ['lib/class-validator/**/*.ts', 'lib/health/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['../**', '!../index.js'],
              message: 'this folder uses the public entry only (docs/architecture.md).',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['lib/**/*.ts'],
    rules: {
      'max-lines': ['error', { max: 400 }],
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: "BinaryExpression[operator='instanceof'][right.name='Error']",
          message: 'jest realms and worker threads break instanceof Error: use describeError().',
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts', 'sample/**/*.spec.ts'],
    rules: {
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/only-throw-error': 'off',
    },
  },
  {
    // Mistakes and right usages that only the compiler reads.
    files: ['test/types/must-*.ts'],
    rules: { '@typescript-eslint/ban-ts-comment': 'off', '@typescript-eslint/no-unused-vars': 'off' },
  },
  {
    files: ['**/*.{mjs,cjs}'],
    languageOptions: {
      globals: {
        require: 'readonly',
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        setInterval: 'readonly',
        clearInterval: 'readonly',
        Buffer: 'readonly',
        performance: 'readonly',
        AbortController: 'readonly',
      },
    },
  },
);
