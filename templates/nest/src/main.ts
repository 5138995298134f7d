import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.ts';
import { systemDatabaseUrl } from './database.ts';

const app = await NestFactory.create(AppModule.forRoot(systemDatabaseUrl));
app.enableShutdownHooks();
await app.listen(Number(process.env['PORT'] ?? 3000));
console.log(await app.getUrl());
