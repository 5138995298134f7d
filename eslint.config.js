import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      'dist',
      'coverage',
      'src/database/migrations/embedded.ts',
      '**/*.mjs',
      'scripts/*.d.ts',
      'eslint.config.js',
      'test/compat/program*',
      'dashboard/src/api/schema.ts',
    ],
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: ['./tsconfig.json', './dashboard/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': 'off',
      'max-params': ['error', 4],
      'no-empty': ['error', { allowEmptyCatch: false }],
      'no-restricted-globals': [
        'error',
        { name: 'setTimeout', message: 'Time goes through kernel/base/clock.ts.' },
        { name: 'setInterval', message: 'Time goes through kernel/base/clock.ts.' },
      ],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true, named: true, defaultFrom: true } }],
    },
  },
  {
    files: ['test/**', 'bench/**', 'examples/**', 'vitest.config.ts', 'src/kernel/base/clock.ts'],
    rules: {
      'no-restricted-globals': 'off',
      'max-lines': 'off',
    },
  },
  {
    // Time passes in the browser; there is no clock to put in its place.
    files: ['dashboard/**'],
    rules: { 'no-restricted-globals': 'off' },
  },
  {
    files: ['test/**', 'vitest.config.ts'],
    rules: {
      'no-restricted-exports': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
    },
  },
  {
    // Their imports resolve in a generated project only, where a test checks the types.
    files: ['templates/**'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: { 'no-restricted-exports': 'off' },
  },
);
