// The login page: the token of the interface, once per session.
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { keys } from '../api/queries';
import { logIn } from '../api/session';
import { Failure } from '../parts/notice';
import { Logo } from './icons';

export function Login() {
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(undefined);
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get('token');
    try {
      const started = await logIn(typeof token === 'string' ? token.trim() : '');
      client.setQueryData(keys.session, started);
      await client.invalidateQueries();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <main className="login">
      <form onSubmit={(event) => void submit(event)}>
        <div className="row-line">
          <Logo />
          <h1>Everstep</h1>
        </div>
        <label className="line">
          Admin token
          <input
            className="field"
            name="token"
            type="password"
            autoComplete="current-password"
            required
            autoFocus
            aria-describedby="token-help"
          />
        </label>
        <p className="soft" id="token-help">
          The token that the admin interface was started with. <code>npx everstep dashboard</code> prints a link that
          has one.
        </p>
        <Failure error={error} />
        <button type="submit" className="button primary">
          Log in
        </button>
      </form>
    </main>
  );
}
