// Claims whose workflows do not all run yet. Until then no run hears that a workflow was cancelled or taken over, so what
// changes meanwhile is noted here, from the moment a claim is sent.
import type { Owned } from '../../run/rows/lifecycle.js';

export class Beginning {
  /** Undefined while the claim is on its way. */
  #workflowIDs: ReadonlySet<string> | undefined;
  readonly #changed = new Set<string>();
  /** Before it was known what the claim got. */
  #isAnythingChanged = false;

  constructor(
    readonly owner: string,
    workflowIDs?: readonly string[],
  ) {
    if (workflowIDs) this.#workflowIDs = new Set(workflowIDs);
  }

  /** The claim got these. */
  expect(workflowIDs: readonly string[]): void {
    this.#workflowIDs = new Set(workflowIDs);
    if (this.#isAnythingChanged) this.noteChange('');
  }

  holds({ workflowID, owner }: Owned): boolean {
    return owner === this.owner && this.#workflowIDs?.has(workflowID) === true;
  }

  /** '' stands for any workflow. */
  noteChange(workflowID: string): void {
    if (workflowID !== '') {
      if (this.#workflowIDs?.has(workflowID) !== false) this.#changed.add(workflowID);
    } else if (this.#workflowIDs) {
      for (const one of this.#workflowIDs) this.#changed.add(one);
    } else this.#isAnythingChanged = true;
  }

  /** Those that may have been taken from this engine since the last call. */
  takeDoubtful<T extends Owned>(runs: readonly T[]): T[] {
    return runs.filter(({ workflowID }) => this.#changed.delete(workflowID));
  }
}

export class Beginnings {
  readonly #all = new Set<Beginning>();

  add(owner: string, workflowIDs?: readonly string[]): Beginning {
    const beginning = new Beginning(owner, workflowIDs);
    this.#all.add(beginning);
    return beginning;
  }

  /** All of them run, or none will. */
  end(beginning: Beginning): void {
    this.#all.delete(beginning);
  }

  /** Whether the workflow was claimed and is about to run here, which takes a while for large histories. */
  hold(owned: Owned): boolean {
    for (const beginning of this.#all) if (beginning.holds(owned)) return true;
    return false;
  }

  /** Workflows were changed from outside, or claimed once more. */
  noteChanges(workflowIDs: readonly string[], except?: Beginning): void {
    for (const beginning of this.#all) {
      if (beginning !== except) for (const workflowID of workflowIDs) beginning.noteChange(workflowID);
    }
  }
}
