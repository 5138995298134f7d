export async function register(): Promise<void> {
  if (process.env['NEXT_RUNTIME'] === 'nodejs') {
    const { launchInNext } = await import('everstep/next');
    const { systemDatabaseUrl } = await import('./database.ts');
    await launchInNext({
      config: { name: 'everstep-app', systemDatabaseUrl },
      workflows: () => import('./workflows.ts'),
    });
  }
}
