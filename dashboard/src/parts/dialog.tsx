// A modal dialog of the browser: it keeps the focus inside and gives it back, and Escape closes it.
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { formatCount } from './format';
import { Failure } from './notice';

export interface DialogProps {
  readonly title: string;
  readonly children?: ReactNode;
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  /** The dialog closes when it resolves, and shows the error if it rejects. */
  readonly onSubmit: () => Promise<unknown>;
  readonly onClose: () => void;
}

export function Dialog({ title, children, action, isDangerous, isDisabled, onSubmit, onClose }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>(undefined);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (!element.current?.open) element.current?.showModal();
  }, []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <form className="dialog-body" onSubmit={(event) => void submit(event)}>
        <h2>{title}</h2>
        {children}
        <Failure error={error} />
        <div className="dialog-buttons">
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button
            type="submit"
            className={`button ${isDangerous ? 'danger' : 'primary'}`}
            disabled={isBusy || isDisabled === true}
          >
            {action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** More than this, and the number has to be typed. */
const TYPED_ABOVE = 100;

export interface ConfirmProps extends Omit<DialogProps, 'isDisabled'> {
  /** How many things it touches. */
  readonly count?: number;
}

export function Confirm({ count = 1, children, ...dialog }: ConfirmProps) {
  const [typed, setTyped] = useState('');
  const isTyped = count > TYPED_ABOVE;
  return (
    <Dialog {...dialog} isDisabled={isTyped && typed.replaceAll(',', '').trim() !== String(count)}>
      {children}
      {isTyped && (
        <label className="line">
          <span>
            Type <strong>{formatCount(count)}</strong> to confirm.
          </span>
          <input
            className="field"
            inputMode="numeric"
            autoFocus
            value={typed}
            onChange={({ target }) => setTyped(target.value)}
          />
        </label>
      )}
    </Dialog>
  );
}
