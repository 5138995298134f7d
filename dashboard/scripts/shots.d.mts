// The types of `shots.mjs`, for its test.
import type { Page } from 'playwright-core';

export interface Shot {
  readonly name: string;
  readonly path: string;
  readonly sign: string;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export const SHOTS: readonly Shot[];
export const VIEWPORT: { readonly width: number; readonly height: number };
export const ENVIRONMENT_FILE: string;
export function pictureFile(name: string, colorScheme: 'light' | 'dark'): string;
export function takeShots(
  page: Page,
  url: string,
  shot: Shot,
): Promise<{ light: Buffer; dark: Buffer; unsteady: Box[] }>;
export function environmentOf(page: Page): Promise<{ browser: string; widths: number[] }>;
export function shareOfDifference(
  page: Page,
  pictures: readonly [Buffer, Buffer],
  ignored?: readonly Box[],
): Promise<number>;
