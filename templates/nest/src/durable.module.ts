import { type DynamicModule, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { DBOS } from 'everstep';

/** Launches Everstep when all providers exist, and shuts it down with the application. */
@Module({})
export class DurableModule implements OnApplicationBootstrap, OnApplicationShutdown {
  static forRoot(systemDatabaseUrl: string): DynamicModule {
    DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl });
    return { module: DurableModule };
  }

  async onApplicationBootstrap(): Promise<void> {
    await DBOS.launch();
  }

  async onApplicationShutdown(): Promise<void> {
    await DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 });
  }
}
