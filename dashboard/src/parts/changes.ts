// Changes that need no dialog: a button that waits, and an error beside it.
import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';

/** Runs a change and reads again what it has changed. */
export function useChange<V>(act: (value: V) => Promise<unknown>, ...stale: readonly QueryKey[]) {
  const client = useQueryClient();
  return useMutation<unknown, Error, V>({
    mutationFn: act,
    onSuccess: () => Promise.all(stale.map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}
