export declare function findViolations(sourceFolder: string): string[];
