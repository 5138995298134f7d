// The YAML parser, in a file of its own: it is loaded only where there is a dbos-config.yaml.
import { LineCounter, parseDocument, visit } from 'yaml';
import { type ReadText, unreadable } from './config-document.js';

/** Parses dbos-config.yaml. No error quotes a value: it may be a password. */
export function parseYaml(text: string, readText: ReadText): unknown {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error) {
    const { line } = lineCounter.linePos(error.pos[0]);
    throw unreadable(`error in line ${line} (${error.code})`);
  }
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string') node.value = readText(node.value, node.type === 'PLAIN');
    },
  });
  try {
    return document.toJS() as unknown;
  } catch {
    // Not kept as the cause: the error names the alias, which may be a password that starts with an asterisk.
    throw unreadable('it uses an undefined alias, or too many aliases');
  }
}
