// The list of keys.
import { Fragment, useEffect, useRef } from 'react';
import { KEY_HELP } from './keys';

export function Help({ onClose }: { onClose: () => void }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (!element.current?.open) element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label="Keys" onClose={onClose}>
      <div className="dialog-body">
        <h2>Keys</h2>
        <dl className="keys">
          {KEY_HELP.map(([key, meaning]) => (
            <Fragment key={key}>
              <dt>
                {key.split('  ').map((one) => (
                  <kbd key={one}>{one}</kbd>
                ))}
              </dt>
              <dd>{meaning}</dd>
            </Fragment>
          ))}
        </dl>
        <div className="dialog-buttons">
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}
